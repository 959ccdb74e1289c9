#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "vkml/core/device.h"

namespace vkml {

/// What is kept of a Vulkan device beside the pipeline cache: files named by the device and its driver.
struct DeviceFiles {
    std::filesystem::path folder;  // empty: nothing is kept on disk
    std::string uuid, driver;

    /// `<uuid>-<driver><extension>` in the folder, or an empty path where there is none.
    std::filesystem::path file(std::string_view extension) const;
};

DeviceFiles device_files(Device device);

}  // namespace vkml
