#pragma once
#include <cstddef>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "vkml/runtime/pool.h"
#include "vkml/runtime/stream.h"

namespace vkml {

/// What a stream notes down while a capture runs: the commands, the memory they touch, and a pool of their own, so that
/// every address stays what it was until the capture goes.
class CaptureLog {
  public:
    // Many captures may live at once, most of them small.
    static constexpr std::size_t kFirstSlab = std::size_t{1} << 20;

    explicit CaptureLog(Backend& backend) : pool_(std::make_unique<Pool>(backend, MemoryKind::device, kFirstSlab)) {}

    Storage allocate(std::size_t bytes) { return pool_->allocate(bytes); }
    void note_dispatch(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid, std::span<const std::byte> args,
                       Uses reads, Uses writes, const DrawPlace& drawn);
    void note_copy(const Storage& target, std::size_t target_offset, const Storage& source, std::size_t source_offset,
                   std::size_t bytes);
    void note_barrier();

    /// Records every command again, in order, with new draws where the default generator had given one: the same
    /// new one wherever the recording had the same.
    void play(Backend& backend);
    std::size_t size() const { return commands_.size(); }
    /// Ends the log. Tensors that were made while it ran may still live in its memory.
    std::unique_ptr<Pool> take_pool() { return std::move(pool_); }
    std::thread::id thread() const { return thread_; }
    /// Whether its thread's work is not noted down for now. Only that thread asks and sets.
    bool paused() const { return paused_; }
    void pause(bool paused) { paused_ = paused; }

  private:
    struct Command {
        enum class What : std::uint8_t { dispatch, copy, barrier } what;
        DType dtype = DType::none;
        const Kernel* kernel = nullptr;
        Spec spec = {};
        Grid grid = {};
        std::size_t args = 0, args_size = 0;  // where in args_
        Address target = 0, source = 0;
        std::size_t bytes = 0;
    };
    void keep(const Block* block);
    void redraw();

    std::unique_ptr<Pool> pool_;
    const std::thread::id thread_ = std::this_thread::get_id();
    std::unordered_map<const Block*, Storage> touched_;
    std::vector<Command> commands_;
    std::vector<std::byte> args_;
    std::vector<Draw> draws_;  // of the default generator, in order of their first use
    struct Redrawn {
        std::size_t draw;          // in draws_
        std::size_t seed, offset;  // in args_
    };
    std::vector<Redrawn> redrawn_;
    bool paused_ = false;
};

}  // namespace vkml
