#include "vkml/runtime/cpu/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/runtime/cpu/convert.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vkml/core/float16.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::ScalableTag<float>;
using Half = hn::Rebind<hwy::float16_t, Wide>;
using Bits = hn::ScalableTag<std::uint32_t>;
using Short = hn::Rebind<std::uint16_t, Bits>;

// Highway emulates the conversions of halves below AVX2, and truncates there: hence the two #if.
void from_f16(const std::uint16_t* in, float* out, std::int64_t n) {
    std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Wide()));
    for (; i + lanes <= n; i += lanes)
        hn::StoreU(hn::PromoteTo(Wide(), hn::LoadU(Half(), reinterpret_cast<const hwy::float16_t*>(in + i))), Wide(),
                   out + i);
#endif
    for (; i < n; i++) out[i] = float_from_f16(in[i]);
}

void to_f16(const float* in, std::uint16_t* out, std::int64_t n) {
    std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Wide()));
    for (; i + lanes <= n; i += lanes)
        hn::StoreU(hn::DemoteTo(Half(), hn::LoadU(Wide(), in + i)), Half(), reinterpret_cast<hwy::float16_t*>(out + i));
#endif
    for (; i < n; i++) out[i] = f16_from_float(in[i]);
}

void from_bf16(const std::uint16_t* in, float* out, std::int64_t n) {
    std::int64_t i = 0;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Wide()));
    for (; i + lanes <= n; i += lanes) {
        const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(Bits(), hn::LoadU(Short(), in + i)));
        hn::StoreU(hn::BitCast(Wide(), bits), Wide(), out + i);
    }
    for (; i < n; i++) out[i] = float_from_bf16(in[i]);
}

void to_bf16(const float* in, std::uint16_t* out, std::int64_t n) {
    std::int64_t i = 0;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Wide()));
    const hn::Rebind<std::int32_t, Bits> ints;
    const hn::Rebind<std::uint16_t, decltype(ints)> narrow;
    for (; i + lanes <= n; i += lanes) {
        const auto x = hn::LoadU(Wide(), in + i);
        const auto u = hn::BitCast(Bits(), x);
        const auto top = hn::ShiftRight<16>(u);
        const auto odd = hn::And(top, hn::Set(Bits(), 1));
        const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(u, hn::Set(Bits(), 0x7fffu)), odd));
        const auto nan = hn::RebindMask(Bits(), hn::IsNaN(x));
        const auto bits = hn::IfThenElse(nan, hn::Or(top, hn::Set(Bits(), 0x40u)), rounded);
        hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(ints, bits)), narrow, out + i);
    }
    for (; i < n; i++) out[i] = bf16_from_float(in[i]);
}

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(from_f16);
HWY_EXPORT(to_f16);
HWY_EXPORT(from_bf16);
HWY_EXPORT(to_bf16);

void f32_from_f16(const std::uint16_t* in, float* out, std::int64_t n) { HWY_DYNAMIC_DISPATCH(from_f16)(in, out, n); }
void f16_from_f32(const float* in, std::uint16_t* out, std::int64_t n) { HWY_DYNAMIC_DISPATCH(to_f16)(in, out, n); }
void f32_from_bf16(const std::uint16_t* in, float* out, std::int64_t n) { HWY_DYNAMIC_DISPATCH(from_bf16)(in, out, n); }
void bf16_from_f32(const float* in, std::uint16_t* out, std::int64_t n) { HWY_DYNAMIC_DISPATCH(to_bf16)(in, out, n); }

}  // namespace vkml::cpu
#endif
