// Included once per Highway target by what needs an exponential of vectors.
#if defined(VKML_RUNTIME_CPU_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_RUNTIME_CPU_EXP_INL_H_
#undef VKML_RUNTIME_CPU_EXP_INL_H_
#else
#define VKML_RUNTIME_CPU_EXP_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Highway's Exp gives 0 for NaN.
template <class D, class Vector>
HWY_INLINE Vector exp_of(D d, Vector x) {
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
