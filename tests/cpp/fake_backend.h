#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vkml/core/error.h"
#include "vkml/runtime/backend.h"

/// A device that writes down what it is told and does it as late as it may: copies and dispatches run when somebody
/// waits for them, so memory that is reused too early shows as wrong values.
namespace vkml::testing_ {

class FakeBackend final : public Backend {
  public:
    std::vector<std::string> events;  // "dispatch <kernel>", "copy", "barrier", "submit"
    std::function<void(const Kernel&, std::span<const std::byte>)> on_dispatch;
    std::size_t most_bytes = SIZE_MAX;
    int allocations = 0, releases = 0;

    ~FakeBackend() override {
        EXPECT_TRUE(memory_.empty()) << memory_.size() << " device allocations were not released";
    }

    Device device() const override { return {DeviceType::vulkan, 7}; }
    const Limits& limits() const override { return limits_; }
    Memory allocate(std::size_t bytes, MemoryKind) override {
        check<OutOfMemoryError>(bytes <= most_bytes, "allocation: expected at most ", most_bytes,
                                " bytes (fake limit), got ", bytes);
        void* data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        allocations++;
        memory_[data] = bytes;
        return {reinterpret_cast<Address>(data), bytes, data};
    }
    void release(const Memory& memory) noexcept override {
        EXPECT_EQ(memory_.erase(memory.host), 1u) << "released twice, or never allocated";
        releases++;
        std::free(memory.host);
    }

    void dispatch(const Kernel& kernel, DType, const Spec&, Grid, std::span<const std::byte> args) override {
        events.push_back("dispatch " + std::string(kernel.name));
        std::vector<std::byte> copy(args.begin(), args.end());
        recorded_.push_back([this, &kernel, copy] {
            if (on_dispatch) on_dispatch(kernel, copy);
        });
    }
    void copy(Address dst, Address src, std::size_t bytes) override {
        events.push_back("copy");
        recorded_.push_back(
            [=] { std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes); });
    }
    void barrier() override { events.push_back("barrier"); }
    Timepoint submit() override {
        if (recorded_.empty()) return submitted_;
        events.push_back("submit");
        submitted_++;
        for (auto& command : recorded_) waiting_.push_back({submitted_, std::move(command)});
        recorded_.clear();
        return submitted_;
    }
    bool reached(Timepoint point) override { return point <= finished_; }
    void wait(Timepoint point) override {
        std::size_t done = 0;
        while (done < waiting_.size() && waiting_[done].first <= point) waiting_[done++].second();
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
        finished_ = std::max(finished_, point);
    }

    int count(const std::string& event) const {
        int n = 0;
        for (const std::string& e : events) n += e == event;
        return n;
    }
    /// The events since the last call, joined by commas, without submits.
    std::string commands() {
        std::string out;
        for (const std::string& e : events)
            if (e != "submit") out += (out.empty() ? "" : ", ") + e;
        events.clear();
        return out;
    }

  private:
    Limits limits_;
    std::map<void*, std::size_t> memory_;
    std::vector<std::function<void()>> recorded_;
    std::vector<std::pair<Timepoint, std::function<void()>>> waiting_;
    Timepoint submitted_ = 0, finished_ = 0;
};

}  // namespace vkml::testing_
