#pragma once
#include <mutex>
#include <new>

namespace vkml {

/// What a fork does with a mutex: takes it before the process splits, gives it back in the parent, and makes it anew in
/// the child, where no other thread is left to give it back.
class ForkAware {
  public:
    ForkAware(const ForkAware&) = delete;
    ForkAware& operator=(const ForkAware&) = delete;

  protected:
    ForkAware();
    ~ForkAware();

  private:
    friend class ForkList;
    virtual bool take(bool wait) = 0;
    virtual void give() = 0;
    virtual void renew() noexcept = 0;
};

/// A mutex that the child of a fork finds free, and what it guards whole. Its holder may wait for other such mutexes
/// and for the device, but never for Python, which the forking thread holds. A mutex with `kTaken` false is held while
/// Python runs: the fork does not wait for it, and the child only gets it anew.
template <class Mutex, bool kTaken = true>
class ForkSafe final : ForkAware {
  public:
    void lock() { mutex_.lock(); }
    bool try_lock() { return mutex_.try_lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    bool take(bool wait) override {
        if (!kTaken) return true;
        if (!wait) return mutex_.try_lock();
        mutex_.lock();
        return true;
    }
    void give() override {
        if (kTaken) mutex_.unlock();
    }
    void renew() noexcept override { new (&mutex_) Mutex; }

    Mutex mutex_;
};

using ForkMutex = ForkSafe<std::mutex>;

}  // namespace vkml
