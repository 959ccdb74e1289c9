#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/elementwise/binary_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vkml/ops/elementwise/elementwise_cpu.h"
#include "vkml/ops/elementwise/loop_cpu.h"
#include "vkml/runtime/fault.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace binary {

#define VKML_BINARY(name, takes, value, a_reads, gradient_a, b_reads, gradient_b)         \
    struct name {                                                                         \
        template <class V>                                                                \
        static HWY_INLINE V apply(V a, V b, [[maybe_unused]] V p, [[maybe_unused]] V q) { \
            return value;                                                                 \
        }                                                                                 \
    };
#include "vkml/ops/elementwise/binary.def"
#undef VKML_BINARY

template <class T>
constexpr elementwise::Loop<T> loops[] = {
#define VKML_BINARY(name, takes, value, a_reads, gradient_a, b_reads, gradient_b) \
    loop_if<T, name, elementwise::works_on<T>(Takes::takes)>(),
#include "vkml/ops/elementwise/binary.def"
#undef VKML_BINARY
};

template <class T>
void report_zeros(const T* b, std::int64_t n, const ElementwiseArgs& args) {
    for (std::int64_t i = 0; i < n; i++)
        if (b[i] == 0) return report_fault(args.q, FaultCode::division_by_zero, args.site, 0, 0);
}

}  // namespace binary

void binary_run(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const ElementwiseArgs*>(raw);
    const auto op = static_cast<BinaryOp>(spec[1]);
    const bool divides = op == BinaryOp::floor_divide || op == BinaryOp::remainder;
    elementwise::with_element(dtype, [&](auto d) {
        using T = typename elementwise::Element<d.value>::Value;
        const auto inspect = divides && std::is_integral_v<T> ? &binary::report_zeros<T> : nullptr;
        elementwise::run<d.value, d.value>(args, spec, binary::loops<T>[spec[1]], inspect);
    });
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
HWY_EXPORT(binary_run);
void binary_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(binary_run)(args, dtype, spec, grid);
}
}  // namespace vkml
#endif
