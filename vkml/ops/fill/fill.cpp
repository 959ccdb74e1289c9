#include "vkml/ops/fill/fill.h"

#include <bit>
#include <cmath>
#include <limits>

#include "vkml/autograd/node.h"
#include "vkml/core/float16.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/ops/fill/fill.spv.h"
#include "vkml/ops/fill/fill_args.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;

template <class T>
void fill_elements(const FillArgs& args) {
    T* target = reinterpret_cast<T*>(args.target);
    const T value = static_cast<T>(args.pattern);
    cpu::parallel_for(static_cast<std::int64_t>(args.count), cpu::kGrain,
                      [&](std::int64_t begin, std::int64_t end) { std::fill(target + begin, target + end, value); });
}

void fill_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const FillArgs*>(raw);
    switch (itemsize(dtype)) {
        case 1: return fill_elements<std::uint8_t>(args);
        case 2: return fill_elements<std::uint16_t>(args);
        case 4: return fill_elements<std::uint32_t>(args);
        default: return fill_elements<std::uint64_t>(args);
    }
}

constexpr Kernel fill_kernel{"fill", spv::fill, fill_cpu};

/// Truncates towards zero, saturates at the type's ends; NaN gives 0.
std::int64_t saturate(double value, double low, double high) {
    if (std::isnan(value)) return 0;
    if (value <= low) return static_cast<std::int64_t>(low);
    // 2^63 itself is no int64.
    if (value >= high) return high >= 0x1p63 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(high);
    return static_cast<std::int64_t>(value);
}

std::int64_t to_integer(const Scalar& s, DType dtype) {
    if (s.kind != Scalar::Kind::floating) return s.integer;
    switch (dtype) {
        case DType::u8: return saturate(s.floating, 0, 255);
        case DType::i8: return saturate(s.floating, -128, 127);
        case DType::i16: return saturate(s.floating, -32768, 32767);
        case DType::i32: return saturate(s.floating, -0x1p31, 0x1p31 - 1);
        default: return saturate(s.floating, -0x1p63, 0x1p63);
    }
}

float to_float(const Scalar& s) {
    return s.kind == Scalar::Kind::floating ? static_cast<float>(s.floating) : static_cast<float>(s.integer);
}

}  // namespace

std::uint64_t Scalar::bits(DType dtype) const {
    switch (dtype) {
        case DType::f64: return std::bit_cast<std::uint64_t>(kind == Kind::floating ? floating : static_cast<double>(integer));
        case DType::f32: return std::bit_cast<std::uint32_t>(to_float(*this));
        case DType::f16: return kind == Kind::floating ? f16_from_double(floating) : f16_from_float(to_float(*this));
        case DType::bf16: return kind == Kind::floating ? bf16_from_double(floating) : bf16_from_float(to_float(*this));
        case DType::boolean: return kind == Kind::floating ? floating != 0 : integer != 0;
        default: return static_cast<std::uint64_t>(to_integer(*this, dtype));
    }
}

DType Scalar::natural_dtype() const {
    return kind == Kind::floating ? default_dtype() : kind == Kind::integer ? DType::i64 : DType::boolean;
}

Tensor full(const Shape& shape, const Scalar& value, DType dtype, Device device) {
    Tensor out = empty(shape, dtype, device);
    if (out.numel() == 0) return out;
    const FillArgs args{out.address(), static_cast<std::uint64_t>(out.numel()), value.bits(dtype)};
    stream(device).launch(fill_kernel, storage_dtype(itemsize(dtype)), Spec{kThreads}, linear_grid(ceil_div(args.count, kThreads)), args,
                          {}, {out});
    return out;
}

Tensor full(const Shape& shape, double value, DType dtype, Device device) { return full(shape, Scalar(value), dtype, device); }

void fill_into(const Tensor& target, const Scalar& value) {
    copy_into(target, full({}, value, target.dtype(), target.device()));
}

}  // namespace vkml
