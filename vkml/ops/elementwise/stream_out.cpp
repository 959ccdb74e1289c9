#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/elementwise/stream_out.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "vkml/ops/elementwise/elementwise_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::elementwise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void stream_bytes(const std::uint8_t* in, std::uint8_t* out, std::int64_t bytes) {
    const hn::ScalableTag<std::uint8_t> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    // The stores need whole-vector alignment; what lies before the first such address is copied.
    const auto past =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) % static_cast<std::uintptr_t>(lanes));
    if (past != 0) {
        i = std::min(bytes, lanes - past);
        std::memcpy(out, in, static_cast<std::size_t>(i));
    }
    for (; i + lanes <= bytes; i += lanes) hn::Stream(hn::LoadU(d, in + i), d, out + i);
    std::memcpy(out + i, in + i, static_cast<std::size_t>(bytes - i));
    hwy::FlushStream();
}

}  // namespace vkml::elementwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::elementwise {
HWY_EXPORT(stream_bytes);
void stream_out(const void* in, void* out, std::int64_t bytes) {
    HWY_DYNAMIC_DISPATCH(stream_bytes)(static_cast<const std::uint8_t*>(in), static_cast<std::uint8_t*>(out), bytes);
}
}  // namespace vkml::elementwise
#endif
