// The stream's ordering on a device that records: barriers exactly where blocks conflict, batches, staging, faults,
// captures.
#include "vkml/runtime/stream.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/cpp/fake_backend.h"
#include "vkml/runtime/capture.h"
#include "vkml/runtime/fault.h"

using namespace vkml;
using vkml::testing_::FakeBackend;

namespace {

constexpr Kernel a{"a", {}, nullptr}, b{"b", {}, nullptr}, c{"c", {}, nullptr};
constexpr std::size_t kNeverRests = 5 << 20;  // a block as large is the next one of its class when freed

struct Args {
    std::uint64_t value = 0;
};

class StreamTest : public testing::Test {
  protected:
    StreamTest() : stream(std::unique_ptr<Backend>(backend = new FakeBackend)) {
        x = stream.allocate(64);
        y = stream.allocate(64);
        z = stream.allocate(64);
    }
    void launch(const Kernel& kernel, std::initializer_list<Use> reads, std::initializer_list<Use> writes,
                std::uint64_t value = 0) {
        stream.launch(kernel, DType::f32, Spec{}, Grid{}, Args{value}, reads, writes);
    }
    std::string commands() { return backend->commands(); }
    std::uint64_t read(const Storage& s) {
        std::uint64_t value = 0;
        stream.download(&value, s, 0, sizeof value);
        return value;
    }

    FakeBackend* backend;
    Stream stream;
    Storage x, y, z;
};

TEST_F(StreamTest, IndependentWorkNeedsNoBarrier) {
    launch(a, {x}, {y});
    launch(b, {x}, {z});
    EXPECT_EQ(commands(), "dispatch a, dispatch b");
}

TEST_F(StreamTest, ReadAfterWriteWaits) {
    launch(a, {}, {x});
    launch(b, {x}, {y});
    EXPECT_EQ(commands(), "dispatch a, barrier, dispatch b");
}

TEST_F(StreamTest, WriteAfterReadWaits) {
    launch(a, {x}, {y});
    launch(b, {}, {x});
    EXPECT_EQ(commands(), "dispatch a, barrier, dispatch b");
}

TEST_F(StreamTest, WriteAfterWriteWaits) {
    launch(a, {}, {x});
    launch(b, {}, {x});
    EXPECT_EQ(commands(), "dispatch a, barrier, dispatch b");
}

TEST_F(StreamTest, RestOfAResultWaitsForNothingButItsReads) {
    launch(a, {y}, {x});
    stream.launch_rest(b, DType::f32, Spec{}, Grid{1, 1, 1}, Args{}, {y}, {x});
    EXPECT_EQ(commands(), "dispatch a, dispatch b");
    launch(c, {x}, {z});
    EXPECT_EQ(commands(), "barrier, dispatch c");
    stream.launch_rest(b, DType::f32, Spec{}, Grid{1, 1, 1}, Args{}, {z}, {x});
    launch(c, {x}, {});
    EXPECT_EQ(commands(), "barrier, dispatch b, barrier, dispatch c");
}

TEST_F(StreamTest, OneBarrierServesAllThatCameBefore) {
    launch(a, {}, {x});
    launch(b, {}, {y});
    launch(c, {x}, {z});  // the barrier
    launch(c, {y}, {});   // covered by it
    EXPECT_EQ(commands(), "dispatch a, dispatch b, barrier, dispatch c, dispatch c");
    launch(a, {z}, {});
    EXPECT_EQ(commands(), "barrier, dispatch a");
}

TEST_F(StreamTest, InPlaceWorkDoesNotWaitForItself) {
    launch(a, {x}, {x});
    EXPECT_EQ(commands(), "dispatch a");
    launch(a, {x}, {x});
    EXPECT_EQ(commands(), "barrier, dispatch a");
}

TEST_F(StreamTest, EmptyTensorsAndGridsTouchNothing) {
    launch(a, {Storage{}}, {x});
    stream.launch(b, DType::f32, Spec{}, Grid{0, 1, 1}, Args{}, {x}, {x});
    EXPECT_EQ(commands(), "dispatch a");
    EXPECT_EQ(stream.dispatch_count(), 1u);
}

TEST_F(StreamTest, ReusedMemoryWaitsForItsLastOwner) {
    Storage old = stream.allocate(kNeverRests);
    const Address address = old->address;
    launch(a, {old}, {y});
    old = {};
    const Storage fresh = stream.allocate(kNeverRests);
    ASSERT_EQ(fresh->address, address);
    launch(b, {}, {fresh});
    EXPECT_EQ(commands(), "dispatch a, barrier, dispatch b");
}

TEST_F(StreamTest, CopiesAreOrderedLikeDispatches) {
    launch(a, {}, {x});
    stream.copy(y, 0, x, 0, 64);
    launch(b, {}, {x});
    EXPECT_EQ(commands(), "dispatch a, barrier, copy, barrier, dispatch b");
}

TEST_F(StreamTest, FirstBatchesAreSmallAndGrow) {
    std::vector<int> batches;
    int since = 0;
    for (int i = 0; i < 600; i++) {
        const int before = backend->count("submit");
        launch(a, {x}, {});
        since++;
        if (backend->count("submit") > before) {
            batches.push_back(since);
            since = 0;
        }
    }
    EXPECT_EQ(batches, (std::vector<int>{8, 16, 32, 64, 128, 128, 128}));
    stream.synchronize();
    backend->events.clear();
    for (int i = 0; i < 8; i++) launch(a, {x}, {});
    EXPECT_EQ(backend->count("submit"), 1);
}

TEST_F(StreamTest, EagerModeSubmitsAndWaitsEveryTime) {
    int ran = 0;
    backend->on_dispatch = [&](const Kernel&, auto) { ran++; };
    stream.set_eager(true);
    launch(a, {}, {x});
    EXPECT_EQ(ran, 1);
    launch(a, {}, {x});
    EXPECT_EQ(ran, 2);
    stream.set_eager(false);
    launch(a, {}, {x});
    EXPECT_EQ(ran, 2);
}

TEST_F(StreamTest, UploadsInFlightKeepTheirValues) {
    // Nothing runs before the read, so a staging block used twice would show the later value in the earlier target.
    std::vector<Storage> targets;
    for (std::uint64_t i = 0; i < 100; i++) {
        targets.push_back(stream.allocate(64));
        const std::uint64_t value = 1000 + i;
        stream.upload(targets.back(), 0, &value, sizeof value);
    }
    for (std::uint64_t i = 0; i < 100; i++) EXPECT_EQ(read(targets[i]), 1000 + i);
}

TEST_F(StreamTest, UploadWaitsForReadersOfItsTarget) {
    launch(a, {x}, {y});
    const std::uint64_t value = 5;
    stream.upload(x, 0, &value, sizeof value);
    launch(b, {x}, {z});
    EXPECT_EQ(commands(), "dispatch a, barrier, copy, barrier, dispatch b");
}

TEST_F(StreamTest, LargeTransfersGoInPieces) {
    const std::size_t bytes = (std::size_t{70} << 20) + 12;
    std::vector<std::uint8_t> sent(bytes), got(bytes);
    for (std::size_t i = 0; i < bytes; i++) sent[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
    const Storage s = stream.allocate(bytes);
    stream.upload(s, 0, sent.data(), bytes);
    stream.download(got.data(), s, 0, bytes);
    EXPECT_TRUE(sent == got);
    EXPECT_EQ(backend->count("copy"), 6);
}

TEST_F(StreamTest, StagingIsReusedOnceTheDeviceIsDone) {
    std::vector<char> data(1 << 20, 'x');
    const Storage s = stream.allocate(data.size());
    for (int i = 0; i < 5; i++) {
        stream.upload(s, 0, data.data(), data.size());
        stream.synchronize();
    }
    const int settled = backend->allocations;
    for (int i = 0; i < 500; i++) {
        stream.upload(s, 0, data.data(), data.size());
        stream.synchronize();
    }
    EXPECT_EQ(backend->allocations, settled);
}

TEST_F(StreamTest, ReportedFaultIsRaisedAtTheNextReadAndOnce) {
    const std::uint32_t site = fault_site("gather");
    backend->on_dispatch = [&](const Kernel& kernel, auto) {
        if (kernel.name == "a") report_fault(stream.fault_address(), FaultCode::index_out_of_range, site, 7, 5);
    };
    stream.fault_address();
    launch(a, {}, {x});
    launch(a, {}, {x});
    try {
        read(y);
        FAIL() << "nothing was raised";
    } catch (const IndexError& e) {
        EXPECT_STREQ(e.what(), "gather: expected an index in [0, 5), got 7");
    }
    EXPECT_NO_THROW(read(y));
    launch(a, {}, {x});
    EXPECT_THROW(stream.synchronize(), IndexError);
}

TEST_F(StreamTest, OutOfMemoryFirstReturnsWhatIsUnused) {
    Storage large = stream.allocate(std::size_t{40} << 20);
    large = {};
    const int releases = backend->releases;
    backend->most_bytes = std::size_t{30} << 20;
    EXPECT_THROW(stream.allocate(std::size_t{50} << 20), OutOfMemoryError);
    EXPECT_GT(backend->releases, releases);
    EXPECT_EQ(stream.memory_stats().live_allocations, 3u);
}

TEST_F(StreamTest, ThreadsAreSerialised) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 1000; i++) {
                const Storage s = stream.allocate(256);
                launch(a, {x}, {s});
                launch(b, {s}, {});
            }
        });
    for (std::thread& t : threads) t.join();
    stream.synchronize();
    EXPECT_EQ(backend->count("dispatch a"), 4000);
    EXPECT_EQ(backend->count("dispatch b"), 4000);
    EXPECT_EQ(stream.dispatch_count(), 8000u);
}

// Captures
// -------------------------------------------------------------------------------------------------------------

TEST_F(StreamTest, CaptureRunsOnceAndReplaysTheSameCommands) {
    std::vector<std::uint64_t> ran;
    backend->on_dispatch = [&](const Kernel&, std::span<const std::byte> args) {
        std::uint64_t value;
        std::memcpy(&value, args.data(), sizeof value);
        ran.push_back(value);
    };
    Capture capture(stream, [&] {
        launch(a, {x}, {y}, 1);
        launch(b, {y}, {z}, 2);
    });
    stream.synchronize();
    EXPECT_EQ(ran, (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(capture.size(), 3u);
    commands();
    const int submits = backend->count("submit");
    capture.replay();
    EXPECT_EQ(backend->count("submit"), submits + 1);
    EXPECT_EQ(commands(), "barrier, dispatch a, barrier, dispatch b, barrier");
    capture.replay();
    stream.synchronize();
    EXPECT_EQ(ran, (std::vector<std::uint64_t>{1, 2, 1, 2, 1, 2}));
}

TEST_F(StreamTest, CapturedMemoryIsNobodyElsesWhileTheCaptureLives) {
    Address inside = 0, input = 0;
    {
        Storage outer = stream.allocate(kNeverRests);
        input = outer->address;
        Capture capture(stream, [&] {
            const Storage temporary = stream.allocate(kNeverRests);
            inside = temporary->address;
            launch(a, {outer}, {temporary});
        });
        outer = {};
        for (int i = 0; i < 8; i++) {
            const Storage s = stream.allocate(kNeverRests);
            EXPECT_NE(s->address, inside);
            EXPECT_NE(s->address, input);
        }
    }
    EXPECT_EQ(stream.allocate(kNeverRests)->address, input);  // given back with the capture
}

TEST_F(StreamTest, TensorsMadeInsideOutliveTheCapture) {
    Storage kept, thrown;
    {
        Capture capture(stream, [&] {
            kept = stream.allocate(2048);
            launch(a, {}, {kept});
        });
    }
    EXPECT_THROW(Capture(stream,
                         [&] {
                             thrown = stream.allocate(2048);
                             launch(a, {}, {thrown});
                             throw std::runtime_error("inside");
                         }),
                 std::runtime_error);
    const int releases = backend->releases;
    std::memset(kept->host, 1, 2048);
    std::memset(thrown->host, 2, 2048);
    EXPECT_EQ(*static_cast<char*>(kept->host), 1);
    kept = {};
    thrown = {};
    stream.empty_cache();
    EXPECT_EQ(backend->releases, releases + 2);
}

TEST_F(StreamTest, AnotherThreadsMemoryIsNotTheCaptures) {
    Address inside = 0, outside = 0;
    std::thread other;
    Capture capture(stream, [&] {
        inside = stream.allocate(kNeverRests)->address;  // free again inside
        other = std::thread([&] { outside = stream.allocate(kNeverRests)->address; });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(stream.allocate(kNeverRests)->address, inside);
    });
    other.join();
    EXPECT_NE(outside, inside);
}

TEST_F(StreamTest, CaptureRefusesReadsAndItself) {
    EXPECT_THROW(Capture(stream, [&] { read(x); }), Error);
    EXPECT_THROW(Capture(stream, [&] { Capture inner(stream, [] {}); }), Error);
    EXPECT_NO_THROW(read(x));  // a failed capture leaves the stream as it was
}

TEST_F(StreamTest, UnrecordedWorkHappensOnceAndTheBarriersStay) {
    Storage once;
    Capture capture(stream, [&] {
        launch(a, {x}, {y}, 1);
        {
            const Unrecorded outside(stream);
            const Unrecorded again(stream);
            once = stream.allocate(kNeverRests);
            launch(b, {y}, {once}, 2);
            launch(b, {once}, {once}, 2);
            launch(b, {once}, {once}, 2);
            stream.await_host_read();
        }
        EXPECT_THROW(stream.await_host_read(), Error);
        launch(b, {y}, {z}, 3);
    });
    EXPECT_EQ(capture.size(), 3u);
    commands();
    capture.replay();
    EXPECT_EQ(commands(), "barrier, dispatch a, barrier, dispatch b, barrier");
    const Address kept = once->address;
    once = {};
    EXPECT_EQ(stream.allocate(kNeverRests)->address, kept);  // the stream's memory, not the capture's
}

TEST_F(StreamTest, ReplayUploadsTheValuesOfTheRecordingAgain) {
    std::uint64_t value = 41;
    Capture capture(stream, [&] { stream.upload(x, 0, &value, sizeof value); });
    value = 7;
    EXPECT_EQ(read(x), 41u);
    stream.upload(x, 0, &value, sizeof value);
    EXPECT_EQ(read(x), 7u);
    capture.replay();
    EXPECT_EQ(read(x), 41u);
}

TEST_F(StreamTest, WorkAfterAReplayWaitsForIt) {
    Capture capture(stream, [&] { launch(a, {}, {x}); });
    commands();
    capture.replay();
    launch(b, {x}, {y});
    const std::string all = commands();
    EXPECT_EQ(all.substr(all.find("dispatch a")), "dispatch a, barrier, dispatch b");
}

}  // namespace
