// The pool: reuse, size classes, trimming, statistics, a flat steady state, threads.
#include "vkml/runtime/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "tests/cpp/fake_backend.h"

using namespace vkml;
using vkml::testing_::FakeBackend;

namespace {

TEST(Pool, LargeFreedBlockIsTheNextOneOfItsClass) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device);
    Storage a = pool.allocate(5000000);
    const Address address = a->address;
    Storage other = pool.allocate(5000000);
    EXPECT_NE(other->address, address);
    a = {};
    EXPECT_EQ(pool.allocate(4900000)->address, address);
    EXPECT_NE(pool.allocate(5000)->address, address);
}

TEST(Pool, SmallFreedBlockRestsWhileOthersAreFreed) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device);
    std::vector<Address> seen;
    for (int i = 0; i < 24; i++) seen.push_back(pool.allocate(1000)->address);
    for (std::size_t i = 0; i < 8; i++) {
        EXPECT_EQ(std::count(seen.begin(), seen.begin() + 8, seen[i]), 1);
        EXPECT_EQ(seen[i + 8], seen[i]);
        EXPECT_EQ(seen[i + 16], seen[i]);
    }
    EXPECT_EQ(pool.stats().block_count, 8u);
    for (int i = 0; i < 20; i++) pool.allocate(4000000);
    EXPECT_EQ(pool.stats().block_count, 8u + 5u);
}

TEST(Pool, RestingBlocksTakeNoNewDeviceMemory) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device, 1 << 16);
    std::set<Address> seen;
    for (int i = 0; i < 12; i++) seen.insert(pool.allocate(30000)->address);
    EXPECT_EQ(seen.size(), 2u);
    EXPECT_EQ(pool.stats().device_allocations, 1u);
}

TEST(Pool, HostMemoryDoesNotRest) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::host);
    const Address address = pool.allocate(1000)->address;
    EXPECT_EQ(pool.allocate(1000)->address, address);
}

TEST(Pool, BlocksAreAlignedLargeEnoughAndNotMuchLarger) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device);
    for (std::size_t bytes = 1; bytes < (std::size_t{8} << 20); bytes = bytes * 17 / 16 + 1) {
        const Storage s = pool.allocate(bytes);
        EXPECT_EQ(s->address % 256, 0u);
        EXPECT_GE(s->bytes, bytes);
        EXPECT_LE(s->bytes, bytes + bytes / 8 + 256) << bytes;
        EXPECT_EQ(s->bytes % 256, 0u);
    }
    EXPECT_GE(pool.allocate(0)->bytes, 1u);
}

TEST(Pool, LiveBlocksNeverOverlap) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device);
    std::mt19937 random(1);
    std::vector<Storage> live;
    for (int i = 0; i < 3000; i++) {
        if (live.size() > 40 || (!live.empty() && random() % 3 == 0)) {
            std::swap(live[random() % live.size()], live.back());
            live.pop_back();
        } else {
            live.push_back(pool.allocate(std::size_t{1} << random() % 22));
        }
        std::map<Address, std::size_t> spans;
        for (const Storage& s : live) spans[s->address] = s->bytes;
        ASSERT_EQ(spans.size(), live.size());
        Address end = 0;
        for (auto [address, bytes] : spans) {
            ASSERT_GE(address, end);
            end = address + bytes;
        }
    }
}

TEST(Pool, StatisticsFollowEveryStep) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device);
    Storage a = pool.allocate(4096), b = pool.allocate(100);
    MemoryStats s = pool.stats();
    EXPECT_EQ(s.live_allocations, 2u);
    EXPECT_EQ(s.in_use_bytes, a->bytes + b->bytes);
    EXPECT_EQ(s.device_allocations, 1u);
    EXPECT_EQ(s.block_count, 2u);
    EXPECT_GE(s.reserved_bytes, s.in_use_bytes);
    const std::uint64_t peak = s.in_use_bytes;
    a = {};
    s = pool.stats();
    EXPECT_EQ(s.in_use_bytes, b->bytes);
    EXPECT_EQ(s.peak_in_use_bytes, peak);
    EXPECT_EQ(s.total_allocations, 2u);
    EXPECT_GT(s.fragmentation(), 0.0);
    pool.reset_peak();
    EXPECT_EQ(pool.stats().peak_in_use_bytes, b->bytes);
}

TEST(Pool, LargeBlocksHaveMemoryOfTheirOwnAndTrimReturnsWhatIsUnused) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device);
    Storage kept = pool.allocate(100);
    Storage large = pool.allocate(std::size_t{40} << 20), larger = pool.allocate(std::size_t{80} << 20);
    EXPECT_EQ(backend.allocations, 3);
    large = {};
    pool.trim();
    EXPECT_EQ(backend.releases, 1);
    larger = {};
    pool.trim();
    EXPECT_EQ(backend.releases, 2);
    EXPECT_EQ(pool.stats().live_allocations, 1u);
    EXPECT_EQ(pool.stats().block_count, 1u);
    kept = {};
    pool.trim();
    EXPECT_EQ(pool.stats().reserved_bytes, 0u);
    EXPECT_EQ(pool.stats().block_count, 0u);
    EXPECT_GE(pool.allocate(100)->bytes, 100u);
}

TEST(Pool, SnapshotShowsWhatIsInUse) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device, 1 << 16);
    const Storage kept = pool.allocate(1000);
    pool.allocate(5000);
    const auto slabs = pool.snapshot();
    ASSERT_EQ(slabs.size(), 1u);
    ASSERT_EQ(slabs[0].parts.size(), 2u);
    EXPECT_EQ(slabs[0].address + slabs[0].parts[0].offset, kept->address);
    EXPECT_TRUE(slabs[0].parts[0].in_use);
    EXPECT_FALSE(slabs[0].parts[1].in_use);
    EXPECT_EQ(slabs[0].in_use_bytes, kept->bytes);
    EXPECT_EQ(slabs[0].bytes, pool.stats().reserved_bytes);
}

TEST(Pool, RepeatedStepNeedsNoNewDeviceMemory) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device);
    MemoryStats after_first;
    for (int step = 0; step < 200; step++) {
        std::vector<Storage> step_tensors;
        for (std::size_t bytes : {100u, 5000u, 70000u, 5000u, 1u << 20, 300u})
            step_tensors.push_back(pool.allocate(bytes));
        if (step == 8) after_first = pool.stats();  // small blocks rest for as long
    }
    const MemoryStats s = pool.stats();
    EXPECT_EQ(s.device_allocations, after_first.device_allocations);
    EXPECT_EQ(s.block_count, after_first.block_count);
    EXPECT_EQ(s.reserved_bytes, after_first.reserved_bytes);
    EXPECT_EQ(s.peak_in_use_bytes, after_first.peak_in_use_bytes);
    EXPECT_EQ(s.in_use_bytes, 0u);
}

TEST(Pool, RefusalChangesNothing) {
    FakeBackend backend;
    backend.most_bytes = std::size_t{128} << 20;
    Pool pool(backend, MemoryKind::device);
    const Storage small = pool.allocate(100);
    const MemoryStats before = pool.stats();
    EXPECT_THROW(pool.allocate(std::size_t{200} << 20), OutOfMemoryError);
    EXPECT_THROW(pool.allocate(SIZE_MAX), OutOfMemoryError);
    const MemoryStats after = pool.stats();
    EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
    EXPECT_EQ(after.reserved_bytes, before.reserved_bytes);
    EXPECT_EQ(after.live_allocations, 1u);
}

TEST(Pool, SmallBlocksAreFoundWhereThereIsNoMemoryForALargeSlab) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device, 1 << 20);
    std::vector<Storage> held;
    for (int i = 0; i < 12; i++) held.push_back(pool.allocate(700000));  // slabs of 1, 2, 4, 8 MiB
    backend.most_bytes = 1 << 19;
    for (int i = 0; i < 16; i++) held.push_back(pool.allocate(400000));
    EXPECT_THROW(pool.allocate(600000), OutOfMemoryError);
    EXPECT_NO_THROW(pool.allocate(20));
}

TEST(Pool, TrimmingForgetsHowLargeSlabsHadBecome) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device, 1 << 16);
    for (int i = 0; i < 5; i++) {
        pool.allocate(100);
        EXPECT_EQ(pool.stats().reserved_bytes, std::size_t{1} << 16);
        pool.trim();
    }
}

TEST(Pool, ThreadsShareIt) {
    FakeBackend backend;
    Pool pool(backend, MemoryKind::device);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; t++)
        threads.emplace_back([&pool, t] {
            std::mt19937 random(t);
            std::vector<Storage> live;
            for (int i = 0; i < 20000; i++) {
                Storage s = pool.allocate(1 + random() % 9000);
                std::memset(s->host, static_cast<int>(t), s->bytes);
                live.push_back(std::move(s));
                if (live.size() > 8) live.erase(live.begin() + static_cast<std::ptrdiff_t>(random() % live.size()));
                const auto* bytes = static_cast<const unsigned char*>(live.front()->host);
                ASSERT_EQ(bytes[0], t);
                ASSERT_EQ(bytes[live.front()->bytes - 1], t);
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(pool.stats().live_allocations, 0u);
    EXPECT_EQ(pool.stats().total_allocations, 40000u);
}

TEST(Pool, BorrowedMemoryRunsItsReleaseOnce) {
    int released = 0;
    double data[4] = {};
    {
        const Storage s = borrow_host(data, sizeof data, &released, [](void* n) { ++*static_cast<int*>(n); });
        const Storage second = s;
        EXPECT_EQ(s->host, data);
    }
    EXPECT_EQ(released, 1);
}

}  // namespace
