#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/elementwise/unary_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vkml/ops/elementwise/elementwise_cpu.h"
#include "vkml/ops/elementwise/loop_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace unary {

#define VKML_UNARY(name, takes, value, keeps, gradient)                                                  \
    struct name {                                                                                        \
        template <class V>                                                                               \
        static HWY_INLINE V apply([[maybe_unused]] V x, V, [[maybe_unused]] V p, [[maybe_unused]] V q) { \
            return value;                                                                                \
        }                                                                                                \
    };
#include "vkml/ops/elementwise/unary.def"
#undef VKML_UNARY

template <class T>
constexpr elementwise::Loop<T> loops[] = {
#define VKML_UNARY(name, takes, value, keeps, gradient) loop_if<T, name, elementwise::works_on<T>(Takes::takes)>(),
#include "vkml/ops/elementwise/unary.def"
#undef VKML_UNARY
};

}  // namespace unary

void unary_run(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const ElementwiseArgs*>(raw);
    elementwise::with_element(dtype, [&](auto d) {
        elementwise::run<d.value, d.value>(args, spec,
                                           unary::loops<typename elementwise::Element<d.value>::Value>[spec[1]]);
    });
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
HWY_EXPORT(unary_run);
void unary_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(unary_run)(args, dtype, spec, grid);
}
}  // namespace vkml
#endif
