#pragma once

/// What the validation layers said, for tests. No Vulkan types here.
namespace vkml::vulkan {

/// True when VKML_VULKAN_VALIDATION=1 and the layers are installed and an instance exists.
bool validation_active();

/// Warnings and errors of the validation layers so far.
int validation_messages();

}  // namespace vkml::vulkan
