#include "vkml/runtime/capture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "vkml/core/error.h"
#include "vkml/runtime/capture_log.h"

namespace vkml {

void CaptureLog::keep(const Block* block) {
    if (block && block->owner != pool_.get()) touched_.try_emplace(block, Storage(const_cast<Block*>(block)));
}

void CaptureLog::note_dispatch(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid,
                               std::span<const std::byte> args, Uses reads, Uses writes, const DrawPlace& drawn) {
    for (const Use& use : reads) keep(use.block());
    for (const Use& use : writes) keep(use.block());
    Command command{.what = Command::What::dispatch, .dtype = dtype, .kernel = &kernel, .spec = spec, .grid = grid};
    command.args = args_.size();
    command.args_size = args.size();
    args_.insert(args_.end(), args.begin(), args.end());
    commands_.push_back(command);
    if (drawn.draw.origin == Draw::Origin::given) return;
    const auto found = std::ranges::find(draws_, drawn.draw);
    const auto which = static_cast<std::size_t>(found - draws_.begin());
    if (found == draws_.end()) draws_.push_back(drawn.draw);
    const bool has_offset = drawn.offset != DrawPlace::kNowhere;
    redrawn_.push_back({which, command.args + drawn.seed, has_offset ? command.args + drawn.offset : drawn.offset});
}

void CaptureLog::note_copy(const Storage& target, std::size_t target_offset, const Storage& source,
                           std::size_t source_offset, std::size_t bytes) {
    keep(target.get());
    keep(source.get());
    Command command{.what = Command::What::copy};
    command.target = target->address + target_offset;
    command.source = source->address + source_offset;
    command.bytes = bytes;
    commands_.push_back(command);
}

void CaptureLog::note_barrier() {
    // Unrecorded work brings barriers with nothing of the capture between them: one is enough.
    if (!commands_.empty() && commands_.back().what == Command::What::barrier) return;
    commands_.push_back({.what = Command::What::barrier});
}

void CaptureLog::redraw() {
    std::vector<Draw> fresh;
    for (const Draw& recorded : draws_) {
        const Draw next = next_draw();
        fresh.push_back(recorded.origin == Draw::Origin::folded ? fold(next) : next);
    }
    for (const Redrawn& place : redrawn_) {
        const Draw& draw = fresh[place.draw];
        std::memcpy(&args_[place.seed], &draw.seed, sizeof draw.seed);
        if (place.offset != DrawPlace::kNowhere) std::memcpy(&args_[place.offset], &draw.offset, sizeof draw.offset);
    }
}

void CaptureLog::play(Backend& backend) {
    redraw();
    for (const Command& c : commands_) {
        switch (c.what) {
            case Command::What::dispatch:
                backend.dispatch(*c.kernel, c.dtype, c.spec, c.grid, std::span(args_).subspan(c.args, c.args_size));
                break;
            case Command::What::copy:
                backend.copy(c.target, c.source, c.bytes);
                break;
            case Command::What::barrier:
                backend.barrier();
                break;
        }
    }
}

Capture::Capture(Stream& stream, const std::function<void()>& work)
    : stream_(&stream), log_(std::make_unique<CaptureLog>(stream.backend())) {
    {
        std::lock_guard lock(stream.mutex_);
        check<Error>(!stream.recording_here(), "capture: expected no capture within a capture, got one");
    }
    // Other threads go on recording meanwhile, and are not part of this capture; their own captures wait for it.
    std::lock_guard turn(stream.capture_turn_);
    stream.set_capture(log_.get());
    try {
        work();
    } catch (...) {
        stream.set_capture(nullptr);
        stream.retire(std::move(log_));
        throw;
    }
    stream.set_capture(nullptr);
}

Capture::~Capture() {
    if (log_) stream_->retire(std::move(log_));
}

Capture::Capture(Capture&& other) noexcept : stream_(other.stream_), log_(std::move(other.log_)) {}

void Capture::replay() {
    std::lock_guard lock(stream_->mutex_);
    check<Error>(!stream_->recording_here(), "replay: expected no replay within a capture, got one");
    Backend& backend = stream_->backend();
    // The log's commands carry no epochs: fence them off from what came before and what follows.
    backend.barrier();
    log_->play(backend);
    backend.barrier();
    stream_->epoch_++;
    stream_->submit_locked();
    stream_->fault_armed_ = true;  // its kernels may report anew
    if (stream_->synchronous_) stream_->raise_fault();
}

std::size_t Capture::size() const { return log_->size(); }

}  // namespace vkml
