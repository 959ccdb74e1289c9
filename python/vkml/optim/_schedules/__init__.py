"""The schedules of vkml.optim.lr_scheduler, by kind."""
