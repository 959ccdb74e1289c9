#include "vkml/runtime/vulkan/cache_file.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

namespace vkml::vulkan {

namespace {

struct Envelope {
    char magic[8] = {'v', 'k', 'm', 'l', 'p', 'c', '0', '1'};
    std::uint64_t bytes = 0;
    std::uint64_t hash = 0;
};

// FNV-1a.
std::uint64_t hash(std::span<const std::byte> data) {
    std::uint64_t h = 0xcbf29ce484222325;
    for (std::byte b : data) h = (h ^ static_cast<std::uint8_t>(b)) * 0x100000001b3;
    return h;
}

}  // namespace

std::vector<std::byte> read_cache_file(const std::filesystem::path& path) noexcept try {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error || size < sizeof(Envelope)) return {};
    std::ifstream file(path, std::ios::binary);
    Envelope found;
    const Envelope expected;
    file.read(reinterpret_cast<char*>(&found), sizeof found);
    if (!file || std::memcmp(found.magic, expected.magic, sizeof found.magic) != 0 ||
        found.bytes != size - sizeof found)
        return {};
    std::vector<std::byte> payload(found.bytes);
    file.read(reinterpret_cast<char*>(payload.data()), static_cast<std::streamsize>(payload.size()));
    if (!file || hash(payload) != found.hash) return {};
    return payload;
} catch (...) {
    return {};
}

bool write_cache_file(const std::filesystem::path& path, std::span<const std::byte> payload) noexcept try {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    auto temporary = path;
    // Unique among processes and threads that write at once.
    temporary += "." + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + "." +
                 std::to_string(reinterpret_cast<std::uintptr_t>(payload.data())) + ".tmp";
    Envelope envelope;
    envelope.bytes = payload.size();
    envelope.hash = hash(payload);
    {
        std::ofstream file(temporary, std::ios::binary);
        file.write(reinterpret_cast<const char*>(&envelope), sizeof envelope);
        file.write(reinterpret_cast<const char*>(payload.data()), static_cast<std::streamsize>(payload.size()));
        if (!file.flush()) {
            file.close();
            std::filesystem::remove(temporary, error);
            return false;
        }
    }
    std::filesystem::rename(temporary, path, error);
    if (error) {
        std::error_code ignored;
        std::filesystem::remove(temporary, ignored);
    }
    return !error;
} catch (...) {
    return false;
}

}  // namespace vkml::vulkan
