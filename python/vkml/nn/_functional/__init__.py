"""The functions of vkml.nn.functional, by subject."""
