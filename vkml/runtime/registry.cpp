#include "vkml/runtime/registry.h"

#include <array>
#include <atomic>
#include <cstdlib>

#include "vkml/core/error.h"
#include "vkml/core/fork_mutex.h"
#include "vkml/runtime/configuration.h"

namespace vkml {
namespace {

constexpr int kMaxDevices = 64;

/// Never destroyed: tensors may outlive every static, and drivers dislike being torn down at exit. Work in flight is
/// waited for.
struct Registry {
    ForkMutex mutex;
    std::array<std::atomic<Stream*>, kMaxDevices + 1> streams{};  // 0: the CPU, 1 + n: vulkan:n
    std::atomic<bool> eager{false};
    std::atomic<std::uint32_t> default_device{0};

    Registry() : eager(setting_on("VKML_EAGER")) {
        const std::string_view wanted = setting("VKML_DEVICE");
        if (!wanted.empty()) store_default(parse_device(wanted));
        std::atexit([] {
            try {
                synchronize();
            } catch (const Error&) {  // an unread fault, or a lost device: nobody is left to hear of it
            }
        });
    }
    void store_default(Device d) { default_device = d.is_cpu() ? 0u : 1u + static_cast<std::uint32_t>(d.index); }
};

Registry& registry() {
    static auto* instance = new Registry;
    return *instance;
}

std::size_t slot(Device d) { return d.is_cpu() ? 0 : 1 + static_cast<std::size_t>(d.index); }

Device device_in(std::size_t slot) {
    return slot == 0 ? Device{} : Device{DeviceType::vulkan, static_cast<std::int16_t>(slot - 1)};
}

thread_local Device t_scope;
thread_local bool t_in_scope = false;

Stream& open(Device device) {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    auto& entry = r.streams[slot(device)];
    if (Stream* opened = entry.load()) return *opened;
    auto* opened = new Stream(device.is_cpu() ? cpu::open() : vulkan::open(device.index));
    opened->set_eager(r.eager);
    entry = opened;
    return *opened;
}

}  // namespace

std::vector<DeviceRecord> devices() {
    std::vector<DeviceRecord> out;
    std::vector<DeviceRecord> rest = vulkan::records();
    for (const DeviceRecord& r : rest)
        if (r.usable && r.type != "cpu") out.push_back(r);
    out.push_back(cpu::record());
    for (const DeviceRecord& r : rest)
        if (!r.usable || r.type == "cpu") out.push_back(r);
    return out;
}

bool has_vulkan() {
    for (const DeviceRecord& r : vulkan::records())
        if (r.usable) return true;
    return false;
}

Stream& stream(Device device) {
    check<DeviceError>(device.index >= 0 && device.index < kMaxDevices, "device: expected an index below 64, got ",
                       device);
    if (Stream* opened = registry().streams[slot(device)].load(std::memory_order_acquire)) [[likely]]
        return *opened;
    return open(device);
}

Device default_device() {
    return t_in_scope ? t_scope : device_in(registry().default_device.load(std::memory_order_relaxed));
}

void set_default_device(Device device) {
    stream(device);  // raises here rather than at the next operator
    registry().store_default(device);
}

DeviceScope::DeviceScope(Device device) : previous_(t_scope), had_previous_(t_in_scope) {
    t_scope = device;
    t_in_scope = true;
}

DeviceScope::~DeviceScope() {
    t_scope = previous_;
    t_in_scope = had_previous_;
}

Device common_device(std::string_view op, std::initializer_list<const Tensor*> tensors) {
    const Tensor* first = nullptr;
    for (const Tensor* t : tensors) {
        if (!t->defined()) continue;
        if (!first) first = t;
        if (t->device() != first->device())
            fail<DeviceError>(op, ": expected tensors on one device, got ", first->device(), " and ", t->device());
    }
    check<Error>(first != nullptr, op, ": expected a defined tensor, got an undefined one");
    return first->device();
}

void synchronize() {
    for (auto& entry : registry().streams)
        if (Stream* opened = entry.load()) opened->synchronize();
}

void set_eager(bool eager) {
    registry().eager = eager;
    for (auto& entry : registry().streams)
        if (Stream* opened = entry.load()) opened->set_eager(eager);
}

bool is_eager() { return registry().eager; }

Tensor empty(const Shape& shape, DType dtype, Device device) {
    for (std::int64_t extent : shape) check(extent >= 0, "empty: expected extents >= 0, got ", shape);
    const std::int64_t n = numel(shape);
    Stream& on = stream(device);
    if (n == 0) return Tensor(Storage{}, Layout(shape), dtype, device);
    std::int64_t bytes = 0;
    check<OutOfMemoryError>(!__builtin_mul_overflow(n, static_cast<std::int64_t>(itemsize(dtype)), &bytes),
                            "allocation: expected fewer than 2^63 bytes, got ", n, " elements of ", dtype);
    return Tensor(on.allocate(static_cast<std::size_t>(bytes)), Layout(shape), dtype, device);
}

}  // namespace vkml
