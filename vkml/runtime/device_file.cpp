#include "vkml/runtime/device_file.h"

#include "vkml/runtime/backend.h"

namespace vkml {

std::filesystem::path DeviceFiles::file(std::string_view extension) const {
    if (folder.empty()) return {};
    return folder / (uuid + "-" + driver + std::string(extension));
}

DeviceFiles device_files(Device device) {
    DeviceFiles files;
    for (const auto& [key, value] : vulkan::info(device.index)) {
        if (key == "pipeline_cache" && value != "none") files.folder = value;
        if (key == "device_uuid") files.uuid = value;
        if (key == "driver_version") files.driver = value;
    }
    return files;
}

}  // namespace vkml
