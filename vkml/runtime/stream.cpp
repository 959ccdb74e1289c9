#include "vkml/runtime/stream.h"

#include <algorithm>
#include <cstring>

#include "vkml/core/error.h"
#include "vkml/runtime/capture_log.h"
#include "vkml/runtime/fault.h"

namespace vkml {
namespace {

// The first batches are small so that an idle device starts early; long runs amortise the cost of a submit.
constexpr int kFirstBatch = 8, kLargestBatch = 128;
constexpr std::size_t kBatchBytes = std::size_t{1} << 30;
constexpr std::size_t kStagingPiece = std::size_t{32} << 20;
constexpr std::size_t kStagingInFlight = std::size_t{256} << 20;

}  // namespace

Stream::Stream(std::unique_ptr<Backend> backend)
    : backend_(std::move(backend)),
      device_(backend_->device()),
      pool_(*backend_, MemoryKind::device),
      shared_pool_(*backend_, MemoryKind::shared),
      staging_pool_(*backend_, MemoryKind::host),
      batch_(kFirstBatch),
      synchronous_(backend_->synchronous()) {
    fault_memory_ = backend_->allocate(sizeof(Fault), MemoryKind::host);
    new (fault_memory_.host) Fault{};
}

Stream::~Stream() {
    backend_->wait(backend_->submit());
    in_flight_.clear();
    backend_->release(fault_memory_);
}

Storage Stream::allocate(std::size_t bytes) {
    if (capturing_.load(std::memory_order_relaxed)) [[unlikely]] {
        std::lock_guard lock(mutex_);
        if (recording_here()) return capture_->allocate(bytes);
    }
    try {
        return pool_.allocate(bytes);
    } catch (const OutOfMemoryError&) {
        empty_cache();
        return pool_.allocate(bytes);
    }
}

Storage Stream::allocate_shared(std::size_t bytes) {
    {
        std::lock_guard lock(mutex_);
        require_outside_capture("an exchange with CUDA");
    }
    try {
        return shared_pool_.allocate(bytes);
    } catch (const OutOfMemoryError&) {
        empty_cache();
        return shared_pool_.allocate(bytes);
    }
}

MemoryStats Stream::memory_stats() const {
    MemoryStats all = pool_.stats();
    all += shared_pool_.stats();
    return all;
}

std::vector<PoolSlab> Stream::memory_snapshot() const {
    std::vector<PoolSlab> all = pool_.snapshot(), shared = shared_pool_.snapshot();
    all.insert(all.end(), shared.begin(), shared.end());
    return all;
}

void Stream::reset_peak_memory() {
    pool_.reset_peak();
    shared_pool_.reset_peak();
}

void Stream::record(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid, std::span<const std::byte> args,
                    Uses reads, Uses writes, const DrawPlace& drawn, bool begun) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    std::lock_guard lock(mutex_);
    order(reads, writes, begun);
    backend_->dispatch(kernel, dtype, spec, grid, args);
    dispatches_++;
    if (recording_here()) [[unlikely]]
        capture_->note_dispatch(kernel, dtype, spec, grid, args, reads, writes, drawn);
    std::size_t bytes = 0;
    for (const Use& use : writes)
        if (use.block()) bytes += use.block()->bytes;
    after_recording(bytes);
}

void Stream::order(Uses reads, Uses writes, bool begun) {
    bool conflict = false;
    for (const Use& use : reads) conflict |= use.block() && use.block()->last_write == epoch_;
    for (const Use& use : begun ? Uses{} : writes)
        conflict |= use.block() && (use.block()->last_write == epoch_ || use.block()->last_read == epoch_);
    if (conflict) {
        backend_->barrier();
        // Also when another thread brought it: the dispatches of the capture on either side rely on it.
        if (capture_) [[unlikely]]
            capture_->note_barrier();
        epoch_++;
    }
    for (const Use& use : reads)
        if (use.block()) use.block()->last_read = epoch_;
    for (const Use& use : writes)
        if (use.block()) use.block()->last_write = epoch_;
}

void Stream::after_recording(std::size_t bytes) {
    if (synchronous_) {
        if (fault_armed_) raise_fault();
        return;
    }
    pending_++;
    pending_bytes_ += bytes;
    if (eager_) {
        backend_->wait(submit_locked());
        raise_fault();
    } else if (pending_ >= batch_ || pending_bytes_ >= kBatchBytes) {
        batch_ = std::min(batch_ * 2, kLargestBatch);
        submit_locked();
    }
}

Timepoint Stream::submit_locked() {
    pending_ = 0;
    pending_bytes_ = 0;
    // A submit ends with a barrier of its own in the backend: what follows starts a new epoch.
    const Timepoint point = backend_->submit();
    retire_staging(false);
    return point;
}

Timepoint Stream::submit() {
    std::lock_guard lock(mutex_);
    return submit_locked();
}

void Stream::synchronize() {
    Timepoint point;
    {
        std::lock_guard lock(mutex_);
        point = submit_locked();
        batch_ = kFirstBatch;
    }
    backend_->wait(point);
    std::lock_guard lock(mutex_);
    raise_fault();
}

void Stream::upload(const Storage& target, std::size_t offset, const void* source, std::size_t bytes) {
    if (bytes == 0) return;
    std::lock_guard lock(mutex_);
    if (recording_here()) [[unlikely]]
        return upload_in_capture(target, offset, source, bytes);
    if (synchronous_) {
        std::memcpy(static_cast<std::byte*>(target->host) + offset, source, bytes);
        return;
    }
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t piece = std::min(bytes - done, kStagingPiece);
        while (in_flight_bytes_ + piece > kStagingInFlight && !in_flight_.empty()) {
            submit_locked();  // may retire all of them
            if (in_flight_.empty()) break;
            backend_->wait(in_flight_.front().until);
            retire_staging(false);
        }
        Storage staging = staging_pool_.allocate(piece);
        std::memcpy(staging->host, static_cast<const std::byte*>(source) + done, piece);
        const Use target_use[] = {target};
        order({}, target_use);
        backend_->copy(target->address + offset + done, staging->address, piece);
        in_flight_bytes_ += staging->bytes;
        // Recorded now, so finished at the latest with the next submit.
        in_flight_.push_back({0, std::move(staging)});
        done += piece;
        after_recording(piece);
    }
}

void Stream::upload_in_capture(const Storage& target, std::size_t offset, const void* source, std::size_t bytes) {
    // The capture keeps the staging block: each replay copies the values of the recording again.
    const Storage staging = staging_pool_.allocate(bytes);
    std::memcpy(staging->host, source, bytes);
    copy(target, offset, staging, 0, bytes);
}

void Stream::download(void* target, const Storage& source, std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    {
        std::lock_guard lock(mutex_);
        require_outside_capture("reading a tensor on the host");
        if (synchronous_) {
            std::memcpy(target, static_cast<const std::byte*>(source->host) + offset, bytes);
            return;
        }
    }
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t piece = std::min(bytes - done, kStagingPiece);
        Storage staging;
        Timepoint point;
        {
            std::lock_guard lock(mutex_);
            staging = staging_pool_.allocate(piece);
            const Use use[] = {source};
            order(use, {});
            backend_->copy(staging->address, source->address + offset + done, piece);
            point = submit_locked();
            batch_ = kFirstBatch;
        }
        backend_->wait(point);
        std::memcpy(static_cast<std::byte*>(target) + done, staging->host, piece);
        done += piece;
    }
    std::lock_guard lock(mutex_);
    raise_fault();
}

void Stream::await_host_read() {
    {
        std::lock_guard lock(mutex_);
        require_outside_capture("reading a tensor on the host");
        if (synchronous_) return;
    }
    synchronize();
}

void Stream::copy(const Storage& target, std::size_t target_offset, const Storage& source, std::size_t source_offset,
                  std::size_t bytes) {
    if (bytes == 0) return;
    std::lock_guard lock(mutex_);
    const Use from[] = {source}, to[] = {target};
    order(from, to);
    backend_->copy(target->address + target_offset, source->address + source_offset, bytes);
    if (recording_here()) [[unlikely]]
        capture_->note_copy(target, target_offset, source, source_offset, bytes);
    after_recording(bytes);
}

Address Stream::fault_address() {
    std::lock_guard lock(mutex_);
    fault_armed_ = true;
    return fault_memory_.address;
}

void Stream::raise_fault() {
    if (!fault_armed_) return;
    auto* fault = static_cast<Fault*>(fault_memory_.host);
    const Fault report = *fault;
    // Another thread may have recorded a reporting kernel since: stay armed until the device has nothing left to do.
    fault_armed_ = capture_ != nullptr || pending_ > 0 || !backend_->reached(backend_->submit());
    if (report.code == 0) return;
    *fault = Fault{};
    throw_fault(report);
}

void Stream::retire_staging(bool all) {
    const Timepoint submitted = backend_->submit();  // nothing pending: the newest submission
    for (Staged& staged : in_flight_)
        if (staged.until == 0) staged.until = submitted;
    while (!in_flight_.empty() && (all || backend_->reached(in_flight_.front().until))) {
        in_flight_bytes_ -= in_flight_.front().block->bytes;
        in_flight_.pop_front();
    }
}

void Stream::empty_cache() {
    std::lock_guard lock(mutex_);
    backend_->wait(submit_locked());
    retire_staging(true);
    pool_.trim();
    shared_pool_.trim();
    staging_pool_.trim();
    drop_parked();
}

void Stream::set_capture(CaptureLog* log) {
    std::lock_guard lock(mutex_);
    capture_ = log;
    capturing_ = log != nullptr;
}

void Stream::retire(std::unique_ptr<CaptureLog> log) {
    std::lock_guard lock(mutex_);
    backend_->wait(submit_locked());
    drop_parked();
    // The memory it touched is let go with `log`, after the lock: its owner may have to wait for Python.
    std::unique_ptr<Pool> pool = log->take_pool();
    if (pool->stats().live_allocations > 0) parked_.push_back(std::move(pool));
}

void Stream::drop_parked() {
    std::erase_if(parked_, [](const std::unique_ptr<Pool>& pool) { return pool->stats().live_allocations == 0; });
}

bool Stream::recording_here() const {
    return capture_ && capture_->thread() == std::this_thread::get_id() && !capture_->paused();
}

void Stream::require_outside_capture(const char* what) const {
    check<Error>(!recording_here(), "capture: expected device work only, got ", what);
}

Unrecorded::Unrecorded(Stream& stream) {
    if (!stream.capturing_.load(std::memory_order_relaxed)) [[likely]]
        return;
    std::lock_guard lock(stream.mutex_);
    if (!stream.recording_here()) return;
    log_ = stream.capture_;
    log_->pause(true);
}

Unrecorded::~Unrecorded() {
    if (log_) log_->pause(false);
}

}  // namespace vkml
