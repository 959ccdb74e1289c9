#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

/// Shapes and strides: up to eight extents, stored in place.
namespace vkml {

inline constexpr int kMaxRank = 8;

/// A short list of extents or strides (in elements), outermost first. Throws ShapeError above rank 8.
class Dims {
  public:
    Dims() = default;
    Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
    explicit Dims(std::span<const std::int64_t> values);
    /// `rank` copies of `value`.
    static Dims filled(int rank, std::int64_t value);

    int size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::int64_t operator[](int i) const { return values_[i]; }
    std::int64_t& operator[](int i) { return values_[i]; }
    const std::int64_t* begin() const { return values_; }
    const std::int64_t* end() const { return values_ + size_; }
    std::int64_t* begin() { return values_; }
    std::int64_t* end() { return values_ + size_; }
    std::int64_t back() const { return values_[size_ - 1]; }

    void push_back(std::int64_t value);
    void insert(int position, std::int64_t value);
    void erase(int position);

    friend bool operator==(const Dims& a, const Dims& b) {
        if (a.size_ != b.size_) return false;
        for (int i = 0; i < a.size_; i++)
            if (a.values_[i] != b.values_[i]) return false;
        return true;
    }

  private:
    std::int64_t values_[kMaxRank] = {};
    int size_ = 0;
};

using Shape = Dims;
using Strides = Dims;

/// A Python tuple: "()", "(3,)", "(2, 3)".
std::string to_string(const Dims& dims);

/// Product of the extents; 1 for rank 0. Throws ShapeError when it exceeds 2^63 - 1.
std::int64_t numel(const Shape& shape);

/// Turns a possibly negative axis into 0..rank-1; rank 0 accepts 0 and -1. Throws IndexError naming `op`.
int wrap_dim(std::string_view op, std::int64_t dim, int rank);

/// Wraps every axis; none may appear twice (ShapeError). An empty list means all axes.
Dims wrap_dims(std::string_view op, const Dims& dims, int rank);

/// The shape that operands of shapes `a` and `b` broadcast to. Throws ShapeError naming `op` and both.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);

}  // namespace vkml
