#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/elementwise/compare_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vkml/ops/elementwise/elementwise_cpu.h"
#include "vkml/ops/elementwise/loop_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace compare {

#define VKML_COMPARE(name, takes, value)                             \
    struct name {                                                    \
        template <class V>                                           \
        static HWY_INLINE V apply(V a, [[maybe_unused]] V b, V, V) { \
            return pick(value, V(1), V(0));                          \
        }                                                            \
    };
#include "vkml/ops/elementwise/compare.def"
#undef VKML_COMPARE

template <class T>
constexpr elementwise::Loop<T> loops[] = {
#define VKML_COMPARE(name, takes, value) &loop<T, name>,
#include "vkml/ops/elementwise/compare.def"
#undef VKML_COMPARE
};

}  // namespace compare

void compare_run(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const ElementwiseArgs*>(raw);
    elementwise::with_element(dtype, [&](auto d) {
        using T = typename elementwise::Element<d.value>::Value;
        elementwise::run<d.value, DType::boolean>(args, spec, compare::loops<T>[spec[1]]);
    });
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
HWY_EXPORT(compare_run);
void compare_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(compare_run)(args, dtype, spec, grid);
}
}  // namespace vkml
#endif
