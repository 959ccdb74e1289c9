#pragma once
#include <string>
#include <string_view>
#include <vector>

/// The documented VKML_* environment switches. Each is read once, at its first use.
namespace vkml {

struct Setting {
    std::string name, value;
    bool set = false;
};

/// Every switch there is, with its value and whether the environment sets it.
std::vector<Setting> configuration();

/// The value of a switch that configuration() lists; empty when it is not set.
std::string_view setting(std::string_view name);
/// True for "1", "true", "on", "yes".
bool setting_on(std::string_view name);

}  // namespace vkml
