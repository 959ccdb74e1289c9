// The Vulkan backend on whatever devices there are; CI has lavapipe. Clean under VKML_VULKAN_VALIDATION=1.
#include "tests/cpp/backend_kernels.spv.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "vkml/core/error.h"
#include "vkml/runtime/backend.h"
#include "vkml/runtime/vulkan/cache_file.h"
#include "vkml/runtime/vulkan/physical_device.h"
#include "vkml/runtime/vulkan/spirv.h"
#include "vkml/runtime/vulkan/validation.h"

using namespace vkml;

namespace {

struct AffineArgs {
    Address x, y;
    std::uint32_t count;
    float scale, shift;
};

constexpr Kernel affine{"affine", spv::affine, nullptr};
constexpr Kernel repeat_add{"repeat_add", spv::repeat_add, nullptr};

template <class Args>
std::span<const std::byte> bytes_of(const Args& args) {
    return std::as_bytes(std::span(&args, 1));
}

template <class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "no exception";
}

class VulkanBackend : public testing::Test {
  protected:
    void SetUp() override {
        messages_ = vulkan::validation_messages();
        if (!vulkan::records().front().usable) GTEST_SKIP() << vulkan::records().front().why;
        backend = vulkan::open(0);
    }
    void TearDown() override {
        backend.reset();
        EXPECT_EQ(vulkan::validation_messages(), messages_) << "the validation layers complained";
    }

    Memory host(std::size_t bytes) {
        Memory m = backend->allocate(bytes, MemoryKind::host);
        std::memset(m.host, 0, m.bytes);
        return m;
    }
    template <class T>
    T* values(const Memory& m) {
        return static_cast<T*>(m.host);
    }
    void add(const Memory& y, std::uint32_t count, float times) {
        const AffineArgs args{y.address, y.address, count, 0, times};
        backend->dispatch(repeat_add, DType::f32, {64}, {(count + 63) / 64}, bytes_of(args));
    }
    void finish() { backend->wait(backend->submit()); }

    std::unique_ptr<Backend> backend;

  private:
    int messages_ = 0;
};

TEST(VulkanRecords, ListsDevicesBestFirstAndSaysWhy) {
    const auto list = vulkan::records();
    ASSERT_FALSE(list.empty());
    bool usable = true;
    for (std::size_t i = 0; i < list.size(); i++) {
        EXPECT_EQ(list[i].device, (Device{DeviceType::vulkan, static_cast<std::int16_t>(i)}));
        EXPECT_TRUE(usable || !list[i].usable) << "unusable devices come last";
        usable = list[i].usable;
        EXPECT_TRUE(usable || !list[i].why.empty());
        if (list[i].type == "cpu") {
            EXPECT_NE(list[i].why.find("only when named"), std::string::npos);
        }
    }
}

TEST(VulkanRecords, OpeningWhatIsNotThereFails) {
    EXPECT_THROW(vulkan::open(1000), DeviceError);
    EXPECT_THROW(vulkan::open(-1), DeviceError);
    EXPECT_THROW(vulkan::info(1000), DeviceError);
}

TEST_F(VulkanBackend, LimitsReachTheGuaranteedFloor) {
    const Limits& l = backend->limits();
    EXPECT_GE(l.max_workgroup_invocations, 128u);
    EXPECT_GE(l.shared_memory, 16384u);
    EXPECT_GE(l.max_grid[0], 65535u);
    EXPECT_GE(l.subgroup_size, 1u);
    EXPECT_GT(l.total_memory, 0u);
    EXPECT_GE(vulkan::info(0).size(), 20u);
}

TEST_F(VulkanBackend, UploadsCopiesAndReadsBack) {
    const std::size_t count = 100'000, bytes = count * 4;
    const Memory in = host(bytes), out = host(bytes), device = backend->allocate(bytes, MemoryKind::device);
    EXPECT_EQ(device.address % 256, 0u);
    EXPECT_EQ(in.address % 256, 0u);
    if (vulkan::records().front().type == "cpu") {
        EXPECT_NE(device.host, nullptr) << "shared memory is shown to the host";
    }
    for (std::size_t i = 0; i < count; i++) values<std::uint32_t>(in)[i] = static_cast<std::uint32_t>(i * 7);
    backend->copy(device.address, in.address, bytes);
    backend->barrier();
    backend->copy(out.address + 4, device.address + 8, bytes - 8);
    finish();
    EXPECT_EQ(values<std::uint32_t>(out)[0], 0u);
    for (std::size_t i = 1; i < count - 1; i++) ASSERT_EQ(values<std::uint32_t>(out)[i], (i + 1) * 7);
    EXPECT_THROW(backend->copy(device.address, in.address, in.bytes + 4), Error);
    EXPECT_THROW(backend->copy(16, in.address, 4), Error);
    for (const Memory& m : {in, out, device}) backend->release(m);
}

TEST_F(VulkanBackend, DispatchesWithSpecialization) {
    const std::uint32_t count = 1000;
    const Memory x = host(count * 4), y = host(count * 4);
    for (std::uint32_t i = 0; i < count; i++) values<float>(x)[i] = static_cast<float>(i);
    const AffineArgs args{x.address, y.address, count, 2, 1};
    for (std::uint32_t threads : {32u, 64u, 128u})
        for (std::uint32_t negate : {0u, 1u}) {
            std::memset(y.host, 0, y.bytes);
            backend->dispatch(affine, DType::f32, {threads, negate}, {(count + threads - 1) / threads}, bytes_of(args));
            finish();
            for (std::uint32_t i = 0; i < count; i++)
                ASSERT_EQ(values<float>(y)[i], (negate ? -1.f : 1.f) * (2.f * static_cast<float>(i) + 1.f));
        }
    EXPECT_EQ(backend->pipeline_count(), 6u);
    backend->dispatch(affine, DType::f32, {32, 1}, {1}, bytes_of(args));
    EXPECT_EQ(backend->pipeline_count(), 6u);
}

TEST_F(VulkanBackend, ManySpecializationsKeepTheirPipelines) {
    const Memory y = host(4);
    for (int round = 0; round < 2; round++)
        for (std::uint32_t threads = 1; threads <= 100; threads++) {
            const AffineArgs args{y.address, y.address, 1, 0, 1};
            backend->dispatch(repeat_add, DType::f32, {threads}, {1}, bytes_of(args));
            backend->barrier();
        }
    finish();
    EXPECT_EQ(values<float>(y)[0], 200.f);
    EXPECT_EQ(backend->pipeline_count(), 100u);
}

TEST_F(VulkanBackend, EachDtypeHasItsModule) {
    if (!backend->limits().f64) GTEST_SKIP() << "no float64";
    const Memory x = host(64), y = host(64);
    values<double>(x)[0] = 1e300;
    const AffineArgs args{x.address, y.address, 1, 2, 0};
    backend->dispatch(affine, DType::f64, {64, 0}, {1}, bytes_of(args));
    finish();
    EXPECT_EQ(values<double>(y)[0], 2e300);
}

TEST_F(VulkanBackend, SaysWhatItCannotRun) {
    const AffineArgs args{};
    const std::string none = message_of([&] { backend->dispatch(affine, DType::i32, {64}, {1}, bytes_of(args)); });
    EXPECT_NE(none.find("affine: no kernel for int32 on "), std::string::npos) << none;
    const Kernel cpu_only{"cpu_only", {}, nullptr};
    EXPECT_THROW(backend->dispatch(cpu_only, DType::f32, {}, {1}, {}), NotImplementedError);
    const std::string grid = message_of([&] {
        backend->dispatch(affine, DType::f32, {64}, {1, backend->limits().max_grid[1] + 1, 1}, bytes_of(args));
    });
    EXPECT_NE(grid.find("affine: expected a grid of at most ("), std::string::npos) << grid;
    const std::vector<std::byte> long_args(1000);
    EXPECT_THROW(backend->dispatch(affine, DType::f32, {64}, {1}, long_args), Error);
    backend->dispatch(affine, DType::f32, {64}, {0, 1, 1}, bytes_of(args));  // empty: nothing happens
}

TEST_F(VulkanBackend, RingIsReusedOverManySubmissions) {
    const std::uint32_t count = 256;
    const Memory y = host(count * 4);
    Timepoint last = 0;
    for (int i = 0; i < 100; i++) {
        if (i) backend->barrier();
        add(y, count, 1);
        const Timepoint point = backend->submit();
        EXPECT_GT(point, last);
        last = point;
        EXPECT_EQ(backend->submit(), point) << "nothing recorded";
    }
    backend->wait(last);
    EXPECT_TRUE(backend->reached(last));
    for (std::uint32_t i = 0; i < count; i++) ASSERT_EQ(values<float>(y)[i], 100.f);
    EXPECT_THROW(backend->wait(last + 1), Error);
}

TEST_F(VulkanBackend, ThreadsWaitWhileAnotherRecords) {
    const Memory y = host(64 * 4);
    add(y, 64, 50'000);
    const Timepoint first = backend->submit();
    backend->barrier();
    add(y, 64, 50'000);
    const Timepoint second = backend->submit();
    std::thread a([&] { backend->wait(first); });
    std::thread b([&] { backend->wait(second); });
    for (int i = 0; i < 50; i++) {
        backend->barrier();
        add(y, 64, 1);
        backend->submit();
    }
    a.join();
    b.join();
    EXPECT_TRUE(backend->reached(second));
    finish();
    EXPECT_EQ(values<float>(y)[63], 100'050.f);
}

TEST_F(VulkanBackend, ReleasedMemoryOutlivesItsCommands) {
    for (int i = 0; i < 20; i++) {
        const Memory a = host(1 << 16), b = backend->allocate(1 << 16, MemoryKind::device);
        backend->copy(b.address, a.address, 1 << 16);
        backend->release(a);
        backend->release(b);
        backend->submit();
    }
    finish();
}

TEST_F(VulkanBackend, SpansCoverEveryDispatch) {
    const Memory y = host(64 * 4);
    backend->profile(true);
    for (int submission = 0; submission < 6; submission++) {
        for (int i = 0; i < 700; i++) {  // more than one query pool
            backend->barrier();
            add(y, 64, 1);
        }
        backend->submit();
    }
    backend->profile(false);
    backend->barrier();
    add(y, 64, 1);
    finish();
    const auto spans = backend->spans();
    ASSERT_EQ(spans.size(), 4200u);
    for (const GpuSpan& s : spans) {
        EXPECT_EQ(s.label, "repeat_add");
        EXPECT_LE(s.begin_ns, s.end_ns);
        EXPECT_GE(s.submission, 1u);
        EXPECT_LE(s.submission, 6u);
    }
    EXPECT_TRUE(backend->spans().empty());
}

TEST_F(VulkanBackend, TooLargeAllocationsFailCleanly) {
    for (std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2, std::size_t{1} << 50})
        for (MemoryKind kind : {MemoryKind::device, MemoryKind::host}) {
            const std::string text = message_of([&] { backend->allocate(bytes, kind); });
            EXPECT_TRUE(text.starts_with("allocation: expected at most ")) << text;
            EXPECT_NE(text.find(", got "), std::string::npos) << text;
            EXPECT_THROW(backend->allocate(bytes, kind), OutOfMemoryError);
        }
    const Memory small = backend->allocate(0, MemoryKind::device);
    EXPECT_NE(small.address, 0u);
    backend->release(small);
}

TEST_F(VulkanBackend, AFullHeapIsNamed) {
    if (backend->limits().total_memory > std::uint64_t{8} << 30) GTEST_SKIP() << "too much memory to fill in a test";
    std::vector<Memory> taken;
    std::string text;
    while (taken.size() < 64) {
        text = message_of([&] { taken.push_back(backend->allocate(256 << 20, MemoryKind::device)); });
        if (text != "no exception") break;
    }
    EXPECT_NE(text.find("memoryHeaps["), std::string::npos) << text;
    for (const Memory& m : taken) backend->release(m);
    backend->release(backend->allocate(256 << 20, MemoryKind::device));
}

TEST_F(VulkanBackend, TwoBackendsLiveSideBySide) {
    auto other = vulkan::open(0);
    const Memory a = host(64), b = other->allocate(64, MemoryKind::host);
    static_cast<float*>(b.host)[0] = 3;
    add(a, 1, 5);
    const AffineArgs args{b.address, b.address, 1, 0, 2};
    other->dispatch(repeat_add, DType::f32, {64}, {1}, bytes_of(args));
    other->wait(other->submit());
    finish();
    EXPECT_EQ(values<float>(a)[0], 5.f);
    EXPECT_EQ(static_cast<float*>(b.host)[0], 5.f);
}

#ifndef _WIN32
TEST_F(VulkanBackend, AForkedChildGetsAnErrorAndLeavesQuietly) {
    const Memory y = host(64 * 4);
    add(y, 64, 1);
    finish();
    const pid_t child = fork();
    if (child == 0) {
        const std::string submit = message_of([&] { backend->submit(); });
        const std::string open = message_of([&] { vulkan::open(0); });
        const auto list = vulkan::records();
        backend.reset();
        const bool right = submit.find("forked child") != std::string::npos && submit == open && !list.front().usable;
        _exit(right ? 42 : 1);  // exit() would run Mesa's handlers, which join threads the child does not have
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 42);
    add(y, 64, 1);
    finish();
    EXPECT_EQ(values<float>(y)[0], 2.f);
}
#endif

TEST_F(VulkanBackend, PipelineCacheIsWrittenReusedAndSurvivesDamage) {
    namespace fs = std::filesystem;
    const fs::path folder = std::getenv("VKML_PIPELINE_CACHE");
    auto build = [&] {
        const Memory y = host(64 * 4);
        add(y, 64, 1);
        finish();
        EXPECT_EQ(values<float>(y)[0], 1.f);
        backend = vulkan::open(0);  // the old one writes the file
    };
    auto only_file = [&] {
        std::vector<fs::path> files;
        for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
        EXPECT_EQ(files.size(), 1u) << "one file, and no temporary left behind";
        return files.empty() ? fs::path() : files.front();
    };
    build();
    const fs::path file = only_file();
    EXPECT_GE(vulkan::read_cache_file(file).size(), 32u);
    build();
    const auto good = fs::file_size(file);
    std::ofstream(file, std::ios::binary | std::ios::in | std::ios::out)
        .seekp(static_cast<std::streamoff>(good - 1))
        .put('\x5a');
    std::ofstream(file, std::ios::binary | std::ios::app).put('x');
    EXPECT_TRUE(vulkan::read_cache_file(file).empty());
    backend = vulkan::open(0);
    build();
    EXPECT_GE(vulkan::read_cache_file(only_file()).size(), 32u);
}

TEST(CacheFile, RefusesWhatIsNotWhole) {
    const auto path = std::filesystem::path(testing::TempDir()) / "vkml_cache_file_test" / "deep" / "file.bin";
    EXPECT_TRUE(vulkan::read_cache_file(path).empty());
    std::vector<std::byte> payload(1000, std::byte{7});
    ASSERT_TRUE(vulkan::write_cache_file(path, payload));
    EXPECT_EQ(vulkan::read_cache_file(path), payload);
    std::filesystem::resize_file(path, 500);
    EXPECT_TRUE(vulkan::read_cache_file(path).empty());
    ASSERT_TRUE(vulkan::write_cache_file(path, payload));
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(100).put('\x01');
    EXPECT_TRUE(vulkan::read_cache_file(path).empty());
    std::filesystem::remove_all(path.parent_path().parent_path());
    EXPECT_FALSE(vulkan::write_cache_file("/proc/no/such/folder", payload));
}

TEST(Spirv, TellsWorkgroupSizeAndCapabilities) {
    const auto code = spv::affine[0].code;
    EXPECT_EQ(vulkan::local_size_x(code, {}), 64u);
    EXPECT_EQ(vulkan::local_size_x(code, {96}), 96u);
    EXPECT_EQ(vulkan::refused_capability(code, [](std::uint32_t) { return true; }), -1);
    const std::uint32_t float64 = 10;
    EXPECT_EQ(vulkan::refused_capability(spv::affine[2].code, [&](std::uint32_t c) { return c != float64; }), float64);
}

// As AMD's devices are: 64 by themselves, 32 for kernels that ask.
TEST(PhysicalDevice, SaysWhetherSubgroupsOf32CanBeHad) {
    vulkan::PhysicalDevice d;
    d.properties.limits.maxComputeWorkGroupInvocations = 1024;
    d.vulkan11.subgroupSize = 64;
    d.vulkan13.minSubgroupSize = 32, d.vulkan13.maxSubgroupSize = 64;
    d.vulkan13.maxComputeWorkgroupSubgroups = 32;
    d.vulkan13.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
    EXPECT_FALSE(d.has_subgroups_of_32()) << "without the feature";
    d.features.vulkan13.subgroupSizeControl = VK_TRUE;
    EXPECT_TRUE(d.has_subgroups_of_32());
    d.vulkan13.maxComputeWorkgroupSubgroups = 16;
    EXPECT_FALSE(d.has_subgroups_of_32()) << "not for 1024 invocations";
    d.vulkan13.maxSubgroupSize = 32;
    EXPECT_TRUE(d.has_subgroups_of_32()) << "there are no others";
    d.vulkan13.minSubgroupSize = d.vulkan13.maxSubgroupSize = 64;
    EXPECT_FALSE(d.has_subgroups_of_32());
}

// Left open on purpose: exit must close it without a message or a crash.
TEST(VulkanExit, AnOpenBackendIsClosedAtExit) {
    if (!vulkan::records().front().usable) GTEST_SKIP();
    static Backend* const leaked = vulkan::open(0).release();
    static const std::unique_ptr<Backend> owned = vulkan::open(0);
    for (Backend* b : {leaked, owned.get()}) {
        const Memory y = b->allocate(256, MemoryKind::device);
        const AffineArgs args{y.address, y.address, 64, 0, 1};
        b->dispatch(repeat_add, DType::f32, {64}, {1}, bytes_of(args));
        b->submit();
    }
}

// A cache folder of its own for every run, so that neither the user's nor another run's is touched.
class OwnCacheFolder : public testing::Environment {
  public:
    void SetUp() override { setenv("VKML_PIPELINE_CACHE", folder_.c_str(), 1); }
    void TearDown() override { std::filesystem::remove_all(folder_); }

  private:
    std::filesystem::path folder_ =
        std::filesystem::path(testing::TempDir()) / ("vkml_pipelines_" + std::to_string(getpid()));
};
[[maybe_unused]] const auto* const own_cache_folder = testing::AddGlobalTestEnvironment(new OwnCacheFolder);

}  // namespace

TEST(Spirv, DropsTheWishToKeepSubnormals) {
    const std::vector<std::uint32_t> code = {0x07230203,    0x10500, 0,    9,  0,      // the header
                                             2u << 16 | 17, 1,                         // OpCapability Shader
                                             2u << 16 | 17, 4464,                      // OpCapability DenormPreserve
                                             4u << 16 | 16, 4,       4459, 32,         // OpExecutionMode
                                             6u << 16 | 16, 4,       17,   64, 1, 1};  // LocalSize 64 1 1
    const auto plain = vulkan::without_denorm_preserve(code);
    EXPECT_EQ(plain.size(), code.size() - 6);
    EXPECT_EQ(vulkan::refused_capability(plain, [](std::uint32_t c) { return c != 4464; }), -1);
    EXPECT_EQ(vulkan::local_size_x(plain, {}), 64u);
    EXPECT_EQ(vulkan::without_denorm_preserve(plain), plain);
}

TEST(Spirv, TellsSharedMemory) {
    const std::vector<std::uint32_t> code = {0x07230203,    0x10500, 0,  9,   0,     // the header
                                             4u << 16 | 71, 3,       1,  0,          // OpDecorate %3 SpecId 0
                                             4u << 16 | 21, 2,       32, 0,          // %2 = OpTypeInt 32
                                             4u << 16 | 50, 2,       3,  100,        // %3 = OpSpecConstant 100
                                             6u << 16 | 52, 2,       4,  132, 3, 3,  // %4 = %3 * %3
                                             4u << 16 | 28, 5,       2,  4,          // %5 = OpTypeArray %2 %4
                                             4u << 16 | 32, 6,       4,  5,          // %6 = pointer to it
                                             4u << 16 | 59, 6,       7,  4};         // %7 = OpVariable Workgroup
    EXPECT_EQ(vulkan::shared_bytes(code, {}), 40000u);
    EXPECT_EQ(vulkan::shared_bytes(code, {10}), 400u);
}
