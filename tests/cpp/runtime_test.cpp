// Decisions, configuration, faults, grids and the registry.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "vkml/core/error.h"
#include "vkml/runtime/configuration.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/fault.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

using namespace vkml;

namespace {

struct Problem {
    std::int64_t n;
};
const char* wants_even(const Problem& p, const Limits&) { return p.n % 2 ? "n is odd" : nullptr; }
const char* wants_shared(const Problem&, const Limits& limits) {
    return limits.shared_memory < 32768 ? "too little shared memory" : nullptr;
}
constexpr Variant<Problem> kTable[] = {{"even", wants_even}, {"shared", wants_shared}, {"naive", never<Problem>}};

TEST(Decisions, FirstFitWinsAndTheLastAlwaysFits) {
    Limits limits;
    EXPECT_EQ(choose("t", "op", kTable, Problem{2}, limits), 0u);
    EXPECT_EQ(choose("t", "op", kTable, Problem{3}, limits), 2u);
    limits.shared_memory = 65536;
    EXPECT_EQ(choose("t", "op", kTable, Problem{3}, limits), 1u);
}

TEST(Decisions, LogSaysWhatRanAndWhy) {
    record_decisions(2);
    const std::uint64_t before = decisions_published();
    choose("t.kernel", "op", kTable, Problem{2}, Limits{});
    choose("t.kernel", "op", kTable, Problem{3}, Limits{});
    choose("t.kernel", "op2", kTable, Problem{5}, Limits{});
    stop_recording_decisions();
    choose("t.kernel", "op", kTable, Problem{7}, Limits{});
    const std::vector<Decision> log = decisions();
    ASSERT_EQ(log.size(), 2u);  // the newest two
    EXPECT_EQ(decisions_published(), before + 3);
    EXPECT_EQ(log[1].op, "op2");
    EXPECT_EQ(log[0].site, "t.kernel");
    EXPECT_EQ(log[0].chose, "naive");
    EXPECT_EQ(log[0].instead_of, "even");
    EXPECT_EQ(log[0].because, "n is odd");
    EXPECT_EQ(log[1].seq, log[0].seq + 1);
    record_decisions();
    EXPECT_TRUE(decisions().empty());
    stop_recording_decisions();
}

TEST(Configuration, ListsEverySwitchOnceAndRefusesOthers) {
    std::set<std::string> names;
    for (const Setting& s : configuration()) EXPECT_TRUE(names.insert(s.name).second) << s.name;
    for (const char* name :
         {"VKML_DEVICE", "VKML_THREADS", "VKML_EAGER", "VKML_LOG", "VKML_VULKAN_VALIDATION", "VKML_VULKAN_DEBUG",
          "VKML_VULKAN_DUMP", "VKML_MIN_SPEC", "VKML_PIPELINE_CACHE", "VKML_MATMUL_PRECISION", "VKML_GEMM_KERNEL",
          "VKML_GEMM_DB", "VKML_GEMV", "VKML_GEMM_SPLITK", "VKML_GEMM_SPLITK_SPLITS", "VKML_CONV2D_PATH"})
        EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_THROW(setting("VKML_NO_SUCH_SWITCH"), Error);
}

TEST(FaultTest, FirstReportWinsWhoeverRaces) {
    for (int round = 0; round < 50; round++) {
        Fault fault;
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; t++)
            threads.emplace_back([&fault, t] {
                report_fault(reinterpret_cast<Address>(&fault), FaultCode::index_out_of_range,
                             static_cast<std::uint32_t>(t), t, 100 + t);
            });
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(fault.value, fault.site);
        EXPECT_EQ(fault.limit, fault.value + 100);
    }
}

TEST(FaultTest, TextsNameTheOperator) {
    const std::uint32_t site = fault_site("floor_divide");
    EXPECT_EQ(fault_site("floor_divide"), site);
    try {
        throw_fault({static_cast<std::uint32_t>(FaultCode::division_by_zero), site, 0, 0});
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "floor_divide: expected a non-zero integer divisor, got 0");
    }
}

TEST(GridTest, LinearGridsCoverAndStayBelowTheLimit) {
    for (const std::uint64_t groups :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{32768}, std::uint64_t{32769}, std::uint64_t{65536},
          std::uint64_t{1} << 30, (std::uint64_t{1} << 30) + 1, std::uint64_t{1} << 40}) {
        const Grid g = linear_grid(groups);
        EXPECT_GE(std::uint64_t{g.x} * g.y * g.z, groups);
        EXPECT_LE(std::max({g.x, g.y, g.z}), 65535u);
        if (groups > 0 && groups <= (std::uint64_t{1} << 30)) {
            EXPECT_LT(std::uint64_t{g.x} * g.y * g.z, groups + kGridFold) << groups;
        }
    }
    EXPECT_EQ(linear_grid(0).x, 0u);
}

TEST(ParallelFor, CoversEveryIndexOnce) {
    for (const std::int64_t n : {0, 1, 5, 1000, 100000}) {
        std::vector<int> hits(static_cast<std::size_t>(n));
        cpu::parallel_for(n, 10, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; i++) hits[static_cast<std::size_t>(i)]++;
        });
        EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), n);
    }
}

TEST(Registry, CpuIsAlwaysThereAndListedOnce) {
    int cpus = 0;
    for (const DeviceRecord& d : devices()) {
        cpus += d.device.is_cpu();
        if (!d.usable) {
            EXPECT_FALSE(d.why.empty()) << d.name;
        }
    }
    EXPECT_EQ(cpus, 1);
}

TEST(Registry, ScopesSetTheDefaultOfTheirThread) {
    const Device before = default_device();
    {
        DeviceScope outer(Device{DeviceType::vulkan, 3});
        EXPECT_EQ(default_device().index, 3);
        {
            DeviceScope inner(Device{});
            EXPECT_TRUE(default_device().is_cpu());
            std::thread([&] { EXPECT_EQ(default_device(), before); }).join();
        }
        EXPECT_EQ(default_device().index, 3);
    }
    EXPECT_EQ(default_device(), before);
}

TEST(Registry, MissingDevicesAndShapesAreRefused) {
    EXPECT_THROW(stream(Device{DeviceType::vulkan, 63}), DeviceError);
    EXPECT_THROW(stream(Device{DeviceType::vulkan, 64}), DeviceError);
    EXPECT_THROW(empty({-1}, DType::f32, Device{}), ShapeError);
    EXPECT_EQ(empty({0, 3}, DType::f32, Device{}).numel(), 0);
    try {
        empty({std::int64_t{1} << 46}, DType::f32, Device{});
        FAIL();
    } catch (const OutOfMemoryError& e) {
        EXPECT_NE(std::string(e.what()).find("281474976710656"), std::string::npos) << e.what();
    }
}

TEST(Registry, DevicesMustAgree) {
    const Tensor a = empty({2}, DType::f32, Device{});
    const Tensor far(Storage{}, Layout({0}), DType::f32, Device{DeviceType::vulkan, 5});
    const Tensor none;
    EXPECT_TRUE(common_device("add", {&none, &a}).is_cpu());
    try {
        common_device("add", {&a, &far});
        FAIL();
    } catch (const DeviceError& e) {
        EXPECT_STREQ(e.what(), "add: expected tensors on one device, got cpu and vulkan:5");
    }
    EXPECT_THROW(common_device("add", {&none}), Error);
    EXPECT_THROW(none.shape(), Error);
}

}  // namespace
