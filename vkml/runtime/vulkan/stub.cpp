#include "vkml/core/error.h"
#include "vkml/runtime/backend.h"
namespace vkml::vulkan {
std::vector<DeviceRecord> records() { return {}; }
std::unique_ptr<Backend> open(int) { fail<DeviceError>("vulkan: no"); }
std::vector<std::pair<std::string, std::string>> info(int) { return {}; }
}
