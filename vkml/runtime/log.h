#pragma once
#include <cstdint>
#include <string_view>

namespace vkml {

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };

/// Messages below the level are dropped; the others go to stderr, one line each. Starts at VKML_LOG, else warn.
void set_log_level(LogLevel level);
LogLevel log_level();
void log(LogLevel level, std::string_view message);

}  // namespace vkml
