#include "vkml/runtime/vulkan/result.h"

#include "vkml/core/error.h"

namespace vkml::vulkan {

std::string_view result_name(VkResult result) {
    switch (result) {
#define VKML_NAME(value) \
    case value:          \
        return #value;
        VKML_NAME(VK_SUCCESS)
        VKML_NAME(VK_NOT_READY)
        VKML_NAME(VK_TIMEOUT)
        VKML_NAME(VK_INCOMPLETE)
        VKML_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
        VKML_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        VKML_NAME(VK_ERROR_INITIALIZATION_FAILED)
        VKML_NAME(VK_ERROR_DEVICE_LOST)
        VKML_NAME(VK_ERROR_MEMORY_MAP_FAILED)
        VKML_NAME(VK_ERROR_LAYER_NOT_PRESENT)
        VKML_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
        VKML_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
        VKML_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
        VKML_NAME(VK_ERROR_TOO_MANY_OBJECTS)
        VKML_NAME(VK_ERROR_UNKNOWN)
        VKML_NAME(VK_ERROR_INVALID_SHADER_NV)
        VKML_NAME(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)
#undef VKML_NAME
        default:
            return "a VkResult without a name";
    }
}

void check_result(VkResult result, std::string_view call) {
    if (result < 0) [[unlikely]]
        fail<DeviceError>("vulkan: ", call, ": expected VK_SUCCESS, got ", result_name(result), " (",
                          static_cast<int>(result), ")");
}

}  // namespace vkml::vulkan
