#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/kda/kda_decode_cpu.cpp"
#include "hwy/foreach_target.h"
#include "vkml/ops/kda/kda_tile_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::kda::HWY_NAMESPACE {
namespace {

template <class R>
struct DecodeScratch {
    explicit DecodeScratch(const Extents& e)
        : q(static_cast<std::size_t>(64 * e.kp)),
          k(q.size()),
          g(q.size()),
          v(static_cast<std::size_t>(64 * e.vp)),
          state(static_cast<std::size_t>(e.kp * e.vp)),
          read(static_cast<std::size_t>(e.vp)) {}
    std::vector<R> q, k, g, v, state, read;
};

template <class E>
void decode_head(const KdaDecodeArgs& a, const Spec& spec, const Extents& e, std::int64_t head,
                 DecodeScratch<typename E::Value>& s) {
    using R = typename E::Value;
    using Wide = WideOf<E>;
    const auto b = static_cast<std::uint64_t>(head / e.HV), hv = static_cast<std::uint64_t>(head % e.HV),
               h = hv / static_cast<std::uint64_t>(e.group);
    load_rows<E>(a.query, b * a.q_b + h * a.q_h, 0, spec[kQueryStep], 1, e.K, e.kp, s.q.data());
    load_rows<E>(a.key, b * a.k_b + h * a.k_h, 0, spec[kKeyStep], 1, e.K, e.kp, s.k.data());
    load_rows<E>(a.value, b * a.v_b + hv * a.v_h, 0, spec[kValueStep], 1, e.V, e.vp, s.v.data());
    load_rows<Wide>(a.log_decay, b * a.g_b + hv * a.g_h, 0, spec[kDecayStep], 1, e.K, e.kp, s.g.data());
    clamp_decay(s.g.data(), e.kp);
    const R beta = reinterpret_cast<const R*>(a.beta)[b * a.b_b + hv * a.b_h];
    R* state = s.state.data();
    std::fill(s.state.begin(), s.state.end(), R(0));
    if (a.state) {
        const R* from = reinterpret_cast<const R*>(a.state) + b * a.s_b + hv * a.s_h;
        for (std::int64_t d = 0; d < e.K; d++)
            load_run<Wide>(from + static_cast<std::uint64_t>(d) * spec[kStateRow], spec[kStateColumn], e.V,
                           state + d * e.vp);
    }
    fade(state, e.vp, s.g.data(), e.kp, e.vp);
    product<true>(s.v.data(), e.vp, s.k.data(), 0, 1, state, e.vp, 1, e.vp, e.K);
    for (std::int64_t c = 0; c < e.vp; c++) s.v[static_cast<std::size_t>(c)] *= beta;
    product(state, e.vp, s.k.data(), 1, 1, s.v.data(), e.vp, e.kp, e.vp, 1);
    std::fill(s.read.begin(), s.read.end(), R(0));
    product(s.read.data(), e.vp, s.q.data(), 0, 1, state, e.vp, 1, e.vp, e.K);
    for (std::int64_t c = 0; c < e.vp; c++) s.read[static_cast<std::size_t>(c)] *= static_cast<R>(e.scale);
    store_run<E>(s.read.data(), e.V, 1, reinterpret_cast<typename E::Stored*>(a.output) + head * e.V);
    R* to = reinterpret_cast<R*>(a.state_out) + head * e.K * e.V;
    for (std::int64_t d = 0; d < e.K; d++) std::copy(state + d * e.vp, state + d * e.vp + e.V, to + d * e.V);
}

void decode_run(const KdaDecodeArgs& a, DType dtype, const Spec& spec, Grid) {
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        const Extents e = extents_of(spec);
        cpu::parallel_for(a.heads, std::max<std::int64_t>(1, cpu::kGrain / (e.kp * e.vp)),
                          [&](std::int64_t begin, std::int64_t end) {
                              DecodeScratch<typename E::Value> scratch(e);
                              for (std::int64_t head = begin; head < end; head++)
                                  decode_head<E>(a, spec, e, head, scratch);
                          });
    });
}

}  // namespace
}  // namespace vkml::kda::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::kda {
namespace {
HWY_EXPORT(decode_run);
}  // namespace

void decode_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(decode_run)(*static_cast<const KdaDecodeArgs*>(args), dtype, spec, grid);
}

}  // namespace vkml::kda
#endif
