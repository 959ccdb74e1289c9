#include "vkml/runtime/vulkan/backend.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "vkml/core/error.h"
#include "vkml/runtime/vulkan/commands.h"
#include "vkml/runtime/vulkan/environment.h"
#include "vkml/runtime/vulkan/memory.h"
#include "vkml/runtime/vulkan/pipelines.h"
#include "vkml/runtime/vulkan/queries.h"

namespace vkml::vulkan {

struct State {
    explicit State(const PhysicalDevice& physical)
        : device(instance(), physical), memory(device), pipelines(device), commands(device), queries(device) {}
    ~State() {
        device.api.vkDeviceWaitIdle(device.handle);
        while (waiting > 0) std::this_thread::yield();
    }

    LogicalDevice device;
    MemoryTable memory;
    Pipelines pipelines;
    Commands commands;
    Queries queries;

    VkPipeline bound = VK_NULL_HANDLE;  // in the open command buffer
    bool profiling = false;
    std::atomic<int> waiting{0};  // threads inside wait()
};

namespace {

std::atomic<int> dumps_left{-1};

void dump(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid) {
    if (dumps_left.fetch_sub(1) <= 0) {
        dumps_left = 0;
        return;
    }
    std::string constants;
    for (std::uint32_t v : spec.values()) constants += concat(constants.empty() ? "" : ", ", v);
    const std::string line =
        concat(kernel.name, " ", dtype, " spec (", constants, ") grid (", grid.x, ", ", grid.y, ", ", grid.z, ")");
    std::fprintf(stderr, "vkml: dispatch %s\n", line.c_str());
}

[[noreturn]] void fail_grid(const Kernel& kernel, const std::uint32_t* most, Grid grid) {
    fail<Error>(kernel.name, ": expected a grid of at most (", most[0], ", ", most[1], ", ", most[2],
                ") workgroups, got (", grid.x, ", ", grid.y, ", ", grid.z, ")");
}

void push_constants(State& s, VkCommandBuffer commands, const Kernel& kernel, std::span<const std::byte> args) {
    check<Error>(args.size() <= s.pipelines.push_constant_bytes(), kernel.name, ": expected at most ",
                 s.pipelines.push_constant_bytes(), " bytes of arguments (maxPushConstantsSize), got ", args.size());
    std::byte padded[256];
    const std::byte* data = args.data();
    const std::size_t size = (args.size() + 3) & ~std::size_t{3};
    if (size != args.size()) {
        std::memset(padded + size - 4, 0, 4);
        std::memcpy(padded, args.data(), args.size());
        data = padded;
    }
    if (size)
        s.device.api.vkCmdPushConstants(commands, s.pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                        static_cast<std::uint32_t>(size), data);
}

}  // namespace

VulkanBackend::VulkanBackend(int index)
    : device_{DeviceType::vulkan, static_cast<std::int16_t>(index)},
      limits_(instance().devices[index].limits),
      state_(std::make_unique<State>(instance().devices[index])) {
    int unset = -1;
    dumps_left.compare_exchange_strong(unset, std::max(0, environment().dump));
    close_before_statics_made_so_far();
}

VulkanBackend::~VulkanBackend() { close(); }

void VulkanBackend::close() noexcept {
    if (state_ && !state_->device.same_process()) static_cast<void>(state_.release());  // the parent's to destroy
    state_.reset();
}

State& VulkanBackend::state() const {
    check<DeviceError>(static_cast<bool>(state_), "vulkan: expected an open device, got ", device_, " closed at exit");
    state_->device.check_alive();
    return *state_;
}

VkCommandBuffer VulkanBackend::commands(State& s) {
    if (s.commands.recording()) [[likely]]
        return s.commands.current();
    const VkCommandBuffer buffer = s.commands.begin();
    s.queries.reuse(s.commands.slot());
    s.bound = VK_NULL_HANDLE;
    return buffer;
}

Memory VulkanBackend::allocate(std::size_t bytes, MemoryKind kind) {
    State& s = state();
    s.memory.collect(s.commands.completed());
    try {
        return s.memory.allocate(bytes, kind);
    } catch (const OutOfMemoryError&) {
        if (!s.memory.collect(s.commands.completed())) throw;
        const Timepoint all = submit();  // what was released may be all that is needed
        s.commands.wait(all);
        s.memory.collect(all);
    }
    return s.memory.allocate(bytes, kind);
}

void VulkanBackend::release(const Memory& memory) noexcept {
    if (!state_ || !state_->device.same_process()) return;
    State& s = *state_;
    s.memory.retire(memory, s.commands.recorded());
    s.memory.collect(s.commands.completed());
}

void VulkanBackend::dispatch(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid,
                             std::span<const std::byte> args) {
    State& s = state();
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    const auto& most = limits_.max_grid;
    if (grid.x > most[0] || grid.y > most[1] || grid.z > most[2]) [[unlikely]]
        fail_grid(kernel, most, grid);
    const std::size_t built = s.pipelines.count();
    const VkPipeline pipeline = s.pipelines.get(kernel, dtype, spec);
    if (built == 0) [[unlikely]]
        close_before_statics_made_so_far();  // those of the driver's compiler
    const VkCommandBuffer buffer = commands(s);
    const DeviceApi& api = s.device.api;
    push_constants(s, buffer, kernel, args);
    if (pipeline != s.bound) {
        api.vkCmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        s.bound = pipeline;
    }
    if (dumps_left.load(std::memory_order_relaxed) > 0) [[unlikely]]
        dump(kernel, dtype, spec, grid);
    if (s.device.debug()) s.device.begin_label(buffer, kernel.name);
    if (s.profiling) s.queries.begin(s.commands.slot(), buffer, kernel.name);
    api.vkCmdDispatch(buffer, grid.x, grid.y, grid.z);
    if (s.profiling) s.queries.end(s.commands.slot(), buffer);
    if (s.device.debug()) s.device.end_label(buffer);
    s.commands.mark_work();
}

void VulkanBackend::copy(Address dst, Address src, std::size_t bytes) {
    State& s = state();
    if (bytes == 0) return;
    const auto to = s.memory.find(dst, bytes), from = s.memory.find(src, bytes);
    const VkBufferCopy region{.srcOffset = from.offset, .dstOffset = to.offset, .size = bytes};
    s.device.api.vkCmdCopyBuffer(commands(s), from.buffer, to.buffer, 1, &region);
    s.commands.mark_work();
}

void VulkanBackend::barrier() {
    State& s = state();
    commands(s);
    s.commands.barrier();
}

Timepoint VulkanBackend::submit() {
    State& s = state();
    const bool open = s.commands.recording();
    const Timepoint point = s.commands.submit();
    if (open && !s.commands.recording()) s.queries.submitted(s.commands.slot(), point);
    s.pipelines.cache().save_sometimes();
    return point;
}

bool VulkanBackend::reached(Timepoint point) { return state().commands.reached(point); }

void VulkanBackend::wait(Timepoint point) {
    State& s = state();
    struct Inside {
        std::atomic<int>& count;
        explicit Inside(std::atomic<int>& c) : count(c) { count++; }
        ~Inside() { count--; }
    } inside(s.waiting);
    s.commands.wait(point);
}

Address VulkanBackend::cuda_address(Address address, std::size_t bytes) {
    return state().memory.cuda_address(address, bytes);
}

void VulkanBackend::profile(bool on) {
    State& s = state();
    check<NotImplementedError>(!on || s.queries.supported(),
                               "profile: expected a queue with time stamps, got timestampValidBits 0 on ",
                               s.device.physical.properties.deviceName);
    s.profiling = on;
}

std::vector<GpuSpan> VulkanBackend::spans() {
    State& s = state();
    return s.queries.take(s.commands.completed());
}

std::size_t VulkanBackend::pipeline_count() const { return state_ ? state_->pipelines.count() : 0; }

std::unique_ptr<Backend> open(int index) {
    check_same_process(instance().generation);
    const auto& devices = instance().devices;
    check<DeviceError>(instance().failure.empty(), instance().failure);
    check<DeviceError>(index >= 0 && index < static_cast<int>(devices.size()), "vulkan: expected an index below ",
                       devices.size(), ", got ", index);
    check<DeviceError>(devices[index].usable(), "vulkan:", index, ": ", devices[index].properties.deviceName, ": ",
                       devices[index].missing);
    return std::make_unique<VulkanBackend>(index);
}

}  // namespace vkml::vulkan
