#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace vkml {

/// Base of objects counted in place; `release_last` decides what happens when the count falls to zero.
template <class T>
class RefCounted {
  public:
    void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
    void drop() const {
        if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            const_cast<T*>(static_cast<const T*>(this))->release_last();
    }
    std::uint32_t use_count() const { return count_.load(std::memory_order_relaxed); }

  private:
    mutable std::atomic<std::uint32_t> count_{0};
};

/// A counted pointer of one word.
template <class T>
class Ref {
  public:
    Ref() = default;
    explicit Ref(T* object) : object_(object) {
        if (object_) object_->retain();
    }
    Ref(const Ref& other) : Ref(other.object_) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (object_) object_->drop();
    }

    T* get() const { return object_; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    explicit operator bool() const { return object_ != nullptr; }
    friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

  private:
    T* object_ = nullptr;
};

}  // namespace vkml
