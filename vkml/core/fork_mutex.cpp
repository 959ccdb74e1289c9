#include "vkml/core/fork_mutex.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace vkml {

class ForkList {
  public:
    static ForkList& get() {
        static auto* list = new ForkList;  // outlives every mutex
        return *list;
    }

    void add(ForkAware* mutex) {
        std::lock_guard lock(mutex_);
        all_.push_back(mutex);
    }
    void remove(ForkAware* mutex) {
        std::lock_guard lock(mutex_);
        std::erase(all_, mutex);
    }

  private:
    static constexpr int kYields = 1000;

    ForkList() {
#ifndef _WIN32
        pthread_atfork([] { get().take_all(); }, [] { get().give_all(); }, [] { get().renew_all(); });
#endif
    }

    /// Tries until all are free at once: waiting for one with others in hand, or with the list in hand, could be for
    /// ever, since other threads nest them in any order and make new ones meanwhile.
    void take_all() {
        for (int round = 0;; round++) {
            mutex_.lock();
            std::size_t taken = 0;
            while (taken < all_.size() && all_[taken]->take(false)) taken++;
            if (taken == all_.size()) return;
            while (taken > 0) all_[--taken]->give();
            mutex_.unlock();
            if (round < kYields)
                std::this_thread::yield();
            else
                std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
    void give_all() {
        for (ForkAware* mutex : all_) mutex->give();
        mutex_.unlock();
    }
    void renew_all() {
        for (ForkAware* mutex : all_) mutex->renew();
        new (&mutex_) std::mutex;
    }

    std::mutex mutex_;
    std::vector<ForkAware*> all_;
};

ForkAware::ForkAware() { ForkList::get().add(this); }
ForkAware::~ForkAware() { ForkList::get().remove(this); }

}  // namespace vkml
