#pragma once
#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "vkml/core/fork_mutex.h"
#include "vkml/core/random.h"
#include "vkml/core/tensor.h"
#include "vkml/runtime/backend.h"
#include "vkml/runtime/kernel.h"
#include "vkml/runtime/pool.h"

namespace vkml {

/// The block a dispatch touches through a tensor or a storage; nothing for an undefined or empty one.
class Use {
  public:
    Use(const Tensor& t) : block_(t.defined() ? t.storage().get() : nullptr) {}
    Use(const Storage& s) : block_(s.get()) {}
    Block* block() const { return block_; }

  private:
    Block* block_;
};
using Uses = std::span<const Use>;
using UseList = std::initializer_list<Use>;

/// The draw of a command, and where its arguments hold it: a replayed capture puts a new one there.
struct DrawPlace {
    static constexpr std::size_t kNowhere = ~std::size_t{0};
    Draw draw;
    std::size_t seed = kNowhere, offset = kNowhere;
};

class CaptureLog;

/// The one in-order queue of a device: every operator on it records here and returns at once. A dispatch waits on an
/// earlier one only if they touch the same block in a conflicting way: each block carries the epoch of its last read
/// and write, a barrier starts a new epoch. Any thread may call; calls are serialised.
class Stream {
  public:
    explicit Stream(std::unique_ptr<Backend> backend);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    Device device() const { return device_; }
    const Limits& limits() const { return backend_->limits(); }
    Backend& backend() { return *backend_; }

    /// Memory in stream order: what it held before is overwritten only after earlier work is done. Throws
    /// OutOfMemoryError.
    Storage allocate(std::size_t bytes);
    /// The same of memory that CUDA can map too (see runtime/cuda.h), and whether a block is of it. Throws Error in a
    /// capture.
    Storage allocate_shared(std::size_t bytes);
    bool is_shared(const Storage& storage) const { return storage && storage->owner == &shared_pool_; }

    /// Records one dispatch that reads and writes the blocks named. An empty grid does nothing.
    /// Throws NotImplementedError when there is no kernel for `dtype` on this device.
    template <class Args>
    void launch(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid, const Args& args, UseList reads,
                UseList writes) {
        static_assert(sizeof(Args) <= kMaxPushConstants, "more arguments than push constants hold");
        record(kernel, dtype, spec, grid, std::as_bytes(std::span(&args, 1)), Uses(reads.begin(), reads.size()),
               Uses(writes.begin(), writes.size()));
    }

    /// The same for the rest of a result that the dispatch before has begun: `writes` are blocks that both write, each
    /// elsewhere, and that nothing else has seen yet. For their sake no barrier comes between the two.
    template <class Args>
    void launch_rest(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid, const Args& args, UseList reads,
                     UseList writes) {
        static_assert(sizeof(Args) <= kMaxPushConstants, "more arguments than push constants hold");
        record(kernel, dtype, spec, grid, std::as_bytes(std::span(&args, 1)), Uses(reads.begin(), reads.size()),
               Uses(writes.begin(), writes.size()), {}, true);
    }

    /// The same for a kernel whose arguments hold a draw as `seed`, and as `offset` unless the draw is folded.
    template <class Args>
    void launch_drawn(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid, Args args, Draw draw,
                      UseList reads, UseList writes) {
        static_assert(sizeof(Args) <= kMaxPushConstants, "more arguments than push constants hold");
        DrawPlace place{.draw = draw, .seed = offsetof(Args, seed)};
        args.seed = draw.seed;
        if constexpr (requires { args.offset; }) {
            args.offset = draw.offset;
            place.offset = offsetof(Args, offset);
        }
        record(kernel, dtype, spec, grid, std::as_bytes(std::span(&args, 1)), Uses(reads.begin(), reads.size()),
               Uses(writes.begin(), writes.size()), place);
    }

    /// The same for a kernel that reaches its tensors through a table: any number of them.
    template <class Args>
    void launch_many(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid, const Args& args,
                     std::span<const Tensor> reads, std::span<const Tensor> writes) {
        static_assert(sizeof(Args) <= kMaxPushConstants, "more arguments than push constants hold");
        const std::vector<Use> from(reads.begin(), reads.end()), to(writes.begin(), writes.end());
        record(kernel, dtype, spec, grid, std::as_bytes(std::span(&args, 1)), from, to);
    }

    /// Host to device; `source` may be reused on return. Does not wait for the device.
    void upload(const Storage& target, std::size_t offset, const void* source, std::size_t bytes);
    /// Device to host; waits for everything recorded so far and raises what kernels reported.
    void download(void* target, const Storage& source, std::size_t offset, std::size_t bytes);
    /// Device to device within this stream; the ranges do not overlap.
    void copy(const Storage& target, std::size_t target_offset, const Storage& source, std::size_t source_offset,
              std::size_t bytes);

    /// What a host read does first, for memory that the host sees directly: waits and raises as download() does.
    void await_host_read();

    /// Starts the device on what was recorded; returns the position to wait for.
    Timepoint submit();
    void wait(Timepoint point) { backend_->wait(point); }
    /// Waits for everything recorded so far and raises what kernels reported.
    void synchronize();

    /// For a kernel's arguments: where to report a fault. The report is raised at the next host read (on the CPU, at
    /// once).
    Address fault_address();

    MemoryStats memory_stats() const;
    std::vector<PoolSlab> memory_snapshot() const;
    void reset_peak_memory();
    /// Gives unused memory back to the device, after waiting for it.
    void empty_cache();
    std::uint64_t dispatch_count() const { return dispatches_; }

    /// True: every operator is waited for before it returns, so that an error appears where it was made.
    void set_eager(bool eager) { eager_ = eager; }

    /// Where allocations and dispatches are also noted down while a capture runs; null ends it. See runtime/capture.h.
    void set_capture(CaptureLog* log);

  private:
    friend class Capture;
    friend class Unrecorded;
    void record(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid, std::span<const std::byte> args,
                Uses reads, Uses writes, const DrawPlace& drawn = {}, bool begun = false);
    // Brings the barrier if the epochs ask for one, and marks the blocks. `begun`: launch_rest().
    void order(Uses reads, Uses writes, bool begun = false);
    void upload_in_capture(const Storage& target, std::size_t offset, const void* source, std::size_t bytes);
    void after_recording(std::size_t bytes);
    Timepoint submit_locked();
    void raise_fault();
    void retire_staging(bool all);
    bool recording_here() const;  // a capture runs, and this thread is the one it records
    void require_outside_capture(const char* what) const;
    void retire(std::unique_ptr<CaptureLog> log);
    void drop_parked();

    std::unique_ptr<Backend> backend_;
    Device device_;
    Pool pool_;
    Pool shared_pool_;
    Pool staging_pool_;
    mutable ForkSafe<std::recursive_mutex> mutex_;
    std::uint64_t epoch_ = 1;
    std::uint64_t dispatches_ = 0;
    int pending_ = 0, batch_;        // dispatches recorded since the last submit, and how many make the next
    std::size_t pending_bytes_ = 0;  // touched by them
    bool eager_ = false;
    bool synchronous_ = false;
    CaptureLog* capture_ = nullptr;
    std::atomic<bool> capturing_{false};         // capture_ is not null; read without the lock
    std::vector<std::unique_ptr<Pool>> parked_;  // of captures that are gone, while tensors live in them
    struct Staged {
        Timepoint until;
        Storage block;
    };
    std::deque<Staged> in_flight_;  // staging blocks the device may still be copying from
    std::size_t in_flight_bytes_ = 0;
    Memory fault_memory_;
    bool fault_armed_ = false;                  // a kernel that can report has been recorded since the last look
    ForkSafe<std::mutex, false> capture_turn_;  // one capture at a time; never asked for while mutex_ is held
};

/// Work of this thread that is no part of the capture that runs, if one does: it happens once, now.
class Unrecorded {
  public:
    explicit Unrecorded(Stream& stream);
    ~Unrecorded();
    Unrecorded(const Unrecorded&) = delete;
    Unrecorded& operator=(const Unrecorded&) = delete;

  private:
    CaptureLog* log_ = nullptr;
};

}  // namespace vkml
