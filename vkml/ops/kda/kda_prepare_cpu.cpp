#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/kda/kda_prepare_cpu.cpp"
#include "hwy/foreach_target.h"
#include "vkml/ops/kda/kda_tile_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::kda::HWY_NAMESPACE {
namespace {

template <class R>
struct PrepareScratch {
    explicit PrepareScratch(std::int64_t kp)
        : f(kp),
          kk(4096),
          lower(4096),
          rows(static_cast<std::size_t>(kp)),
          columns(static_cast<std::size_t>(16 * kp)),
          decay(static_cast<std::size_t>(kp)),
          wide_kk(4096),
          wide_rows(static_cast<std::size_t>(64 * kp)),
          wide_columns(static_cast<std::size_t>(16 * kp)) {}
    Factors<R> f;
    std::vector<R> kk, lower, rows, columns, decay;
    // KK is summed in double: with parallel keys and beta near 2 the solve amplifies its rounding (kda.md 5.3).
    std::vector<double> wide_kk, wide_rows, wide_columns;
};

/// qg, kt and kg: the block factors times those of the blocks before and after.
template <class R>
void store_outer(const Factors<R>& f, const Extents& e, R* slot) {
    const std::int64_t kp = e.kp;
    const R scale = static_cast<R>(e.scale);
    for (std::int64_t block = 0; block < 4; block++)
        for (std::int64_t c = 0; c < kp; c++) {
            R before = 1, after = 1;
            for (std::int64_t m = 0; m < block; m++) before *= f.z[m * kp + c];
            for (std::int64_t m = block + 1; m < 4; m++) after *= f.z[m * kp + c];
            for (std::int64_t i = block * 16; i < block * 16 + 16; i++) {
                slot[e.slot.w + i * kp + c] = f.kp_[i * kp + c] * before;
                slot[e.slot.qg + i * kp + c] = scale * (f.qp[i * kp + c] * before);
                slot[e.slot.kt + i * kp + c] = f.ke[i * kp + c] * after;
            }
        }
}

template <class R>
double wide_dot(const R* x, const R* y, std::int64_t n) {
    if constexpr (sizeof(R) == 8) {
        return dot(x, y, n);
    } else {
        const hn::ScalableTag<double> d;
        const hn::Rebind<float, decltype(d)> half;
        auto sum = hn::Zero(d);
        for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(hn::Lanes(d)))
            sum = hn::MulAdd(hn::PromoteTo(d, hn::LoadU(half, x + i)), hn::PromoteTo(d, hn::LoadU(half, y + i)), sum);
        return hn::GetLane(hn::SumOfLanes(d, sum));
    }
}

/// KK and A over one 16-row diagonal block: products of exp(g) run down the rows.
template <class R>
void pairs_within(const Factors<R>& f, R scale, std::int64_t first, R* kd, R* kk, R* a) {
    const hn::ScalableTag<R> d;
    const std::int64_t kp = f.kp;
    for (std::int64_t j = first; j < first + 16; j++) {
        std::copy(f.k + j * kp, f.k + (j + 1) * kp, kd);
        a[j * 64 + j] = scale * dot(f.q + j * kp, kd, kp);
        for (std::int64_t i = j + 1; i < first + 16; i++) {
            for (std::int64_t c = 0; c < kp; c += static_cast<std::int64_t>(hn::Lanes(d)))
                hn::StoreU(hn::Mul(hn::LoadU(d, kd + c), hn::LoadU(d, f.a + i * kp + c)), d, kd + c);
            kk[i * 64 + j] = static_cast<R>(wide_dot(f.k + i * kp, kd, kp));
            a[i * 64 + j] = scale * dot(f.q + i * kp, kd, kp);
        }
    }
}

/// KK (strictly lower) and A (lower), zero above.
template <class R>
void pairs(PrepareScratch<R>& s, const Extents& e, R* a) {
    const std::int64_t kp = e.kp;
    const R scale = static_cast<R>(e.scale);
    R* kk = s.kk.data();
    std::fill(a, a + 4096, R(0));
    std::copy(s.f.kp_, s.f.kp_ + 64 * kp, s.wide_rows.begin());
    std::fill(s.wide_kk.begin(), s.wide_kk.end(), 0.0);
    for (std::int64_t from = 1; from < 4; from++)
        for (std::int64_t to = 0; to < from; to++) {
            decay_between(s.f, from, to, s.decay.data());
            for (std::int64_t c = 0; c < kp; c++)
                for (std::int64_t j = 0; j < 16; j++) {
                    const auto at = static_cast<std::size_t>(c * 16 + j);
                    s.columns[at] = s.f.ke[(to * 16 + j) * kp + c] * s.decay[static_cast<std::size_t>(c)];
                    s.wide_columns[at] = s.columns[at];
                }
            product(s.wide_kk.data() + from * 1024 + to * 16, 64, s.wide_rows.data() + from * 16 * kp, kp, 1,
                    s.wide_columns.data(), 16, 16, 16, kp);
            product(a + from * 1024 + to * 16, 64, s.f.qp + from * 16 * kp, kp, 1, s.columns.data(), 16, 16, 16, kp);
        }
    std::transform(s.wide_kk.begin(), s.wide_kk.end(), kk, [](double x) { return static_cast<R>(x); });
    for (std::int64_t i = 16; i < 64; i++)
        for (std::int64_t j = 0; j < i / 16 * 16; j++) a[i * 64 + j] *= scale;
    for (std::int64_t block = 0; block < 4; block++) pairs_within(s.f, scale, block * 16, s.rows.data(), kk, a);
}

/// rows (64 x n) = (I + lower)^-1 rows by forward substitution: no inverse is formed, and nothing later than a row
/// reaches it.
template <class R>
void solve(const R* lower, R* rows, std::int64_t n) {
    for (std::int64_t block = 0; block < 64; block += 16) {
        product<true>(rows + block * n, n, lower + block * 64, 64, 1, rows, n, 16, n, block);
        for (std::int64_t i = block + 1; i < block + 16; i++)
            product<true>(rows + i * n, n, lower + i * 64 + block, 64, 1, rows + block * n, n, 1, n, i - block);
    }
}

template <class E>
void prepare_tile(const KdaPrepareArgs& a, const Spec& spec, const Extents& e, std::int64_t index,
                  PrepareScratch<typename E::Value>& s) {
    using R = typename E::Value;
    using Wide = WideOf<E>;
    const std::int64_t head = a.head0 + index / e.tiles, t0 = index % e.tiles * 64;
    const std::int64_t rows = std::min<std::int64_t>(64, a.left - t0);
    const auto b = static_cast<std::uint64_t>(head / e.HV), hv = static_cast<std::uint64_t>(head % e.HV),
               h = hv / static_cast<std::uint64_t>(e.group);
    const auto t = static_cast<std::uint64_t>(t0);
    R* slot = reinterpret_cast<R*>(a.workspace) + index * e.slot.size;
    load_rows<E>(a.query, b * a.q_b + h * a.q_h + t * a.q_t, a.q_t, spec[kQueryStep], rows, e.K, e.kp, s.f.q);
    load_rows<E>(a.key, b * a.k_b + h * a.k_h + t * a.k_t, a.k_t, spec[kKeyStep], rows, e.K, e.kp, s.f.k);
    load_rows<E>(a.value, b * a.v_b + hv * a.v_h + t * a.v_t, a.v_t, spec[kValueStep], rows, e.V, e.vp,
                 slot + e.slot.r);
    load_rows<Wide>(a.log_decay, b * a.g_b + hv * a.g_h + t * a.g_t, a.g_t, spec[kDecayStep], rows, e.K, e.kp, s.f.g);
    load_rows<Wide>(a.beta, b * a.b_b + hv * a.b_h + t * a.b_t, a.b_t, 1, rows, 1, 1, slot + e.slot.b);
    clamp_decay(s.f.g, 64 * e.kp);
    s.f.compute();
    store_outer(s.f, e, slot);
    std::copy(s.f.gs, s.f.gs + e.kp, slot + e.slot.gs);
    pairs(s, e, slot + e.slot.a);
    for (std::int64_t i = 0; i < 64; i++)
        for (std::int64_t j = 0; j < i; j++)
            s.lower[static_cast<std::size_t>(i * 64 + j)] =
                s.kk[static_cast<std::size_t>(i * 64 + j)] * slot[e.slot.b + j];
    solve(s.lower.data(), slot + e.slot.w, e.kp);
    solve(s.lower.data(), slot + e.slot.r, e.vp);
    if (e.keep) std::copy(s.kk.begin(), s.kk.end(), slot + e.slot.kk);
}

void prepare_run(const KdaPrepareArgs& a, DType dtype, const Spec& spec, Grid grid) {
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        const Extents e = extents_of(spec);
        cpu::parallel_for(grid.x, 1, [&](std::int64_t begin, std::int64_t end) {
            PrepareScratch<typename E::Value> scratch(e.kp);
            for (std::int64_t i = begin; i < end; i++) prepare_tile<E>(a, spec, e, i, scratch);
        });
    });
}

}  // namespace
}  // namespace vkml::kda::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::kda {
namespace {
HWY_EXPORT(prepare_run);
}  // namespace

void prepare_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(prepare_run)(*static_cast<const KdaPrepareArgs*>(args), dtype, spec, grid);
}

}  // namespace vkml::kda
#endif
