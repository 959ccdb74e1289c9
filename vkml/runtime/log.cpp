#include "vkml/runtime/log.h"

#include <atomic>
#include <cstdio>

#include "vkml/runtime/configuration.h"

namespace vkml {
namespace {

constexpr std::string_view kNames[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"};

std::atomic<LogLevel>& level() {
    static std::atomic<LogLevel> current = [] {
        const std::string_view wanted = setting("VKML_LOG");
        for (int i = 0; i < 6; i++)
            if (wanted == kNames[i]) return static_cast<LogLevel>(i);
        return LogLevel::warn;
    }();
    return current;
}

}  // namespace

void set_log_level(LogLevel wanted) { level() = wanted; }
LogLevel log_level() { return level(); }

void log(LogLevel at, std::string_view message) {
    if (at < level().load() || at == LogLevel::off) return;
    std::fprintf(stderr, "vkml %s: %.*s\n", kNames[static_cast<int>(at)].data(), static_cast<int>(message.size()),
                 message.data());
}

}  // namespace vkml
