#include "vkml/core/dtype.h"

#include <algorithm>
#include <atomic>

#include "vkml/core/error.h"

namespace vkml {
namespace {
std::atomic<DType> g_default{DType::f32};

DType promote_integers(DType a, DType b) {
    if (a == b) return a;
    const auto [low, high] = std::minmax(a, b);
    if (low == DType::u8 && high == DType::i8) return DType::i16;
    return high;
}
}  // namespace

DType promote(DType a, DType b) {
    if (a == b) return a;
    if (kind(a) != kind(b)) return kind(a) > kind(b) ? a : b;
    if (kind(a) == Kind::integer) return promote_integers(a, b);
    const auto [low, high] = std::minmax(a, b);
    if (low == DType::f16 && high == DType::bf16) return DType::f32;
    return high;
}

DType default_dtype() { return g_default.load(std::memory_order_relaxed); }

void set_default_dtype(DType d) {
    check<DTypeError>(is_floating(d), "set_default_dtype: expected a floating-point dtype, got ", d);
    g_default.store(d, std::memory_order_relaxed);
}

}  // namespace vkml
