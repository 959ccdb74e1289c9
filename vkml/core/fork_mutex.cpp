#include "vkml/core/fork_mutex.h"

#include <algorithm>
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
    ForkList() {
#ifndef _WIN32
        pthread_atfork([] { get().take_all(); }, [] { get().give_all(); }, [] { get().renew_all(); });
#endif
    }

    /// As std::lock: waits for one with nothing in hand, then tries the others. Other threads nest them in any order.
    void take_all() {
        mutex_.lock();
        for (std::size_t first = 0; !all_.empty();) {
            all_[first]->take(true);
            std::size_t taken = 1;
            const auto at = [&](std::size_t i) { return all_[(first + i) % all_.size()]; };
            while (taken < all_.size() && at(taken)->take(false)) taken++;
            if (taken == all_.size()) return;
            const std::size_t busy = (first + taken) % all_.size();
            while (taken > 0) at(--taken)->give();
            first = busy;
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
