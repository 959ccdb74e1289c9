#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/attention/attention_cpu.cpp"
#include "hwy/foreach_target.h"
#include "vkml/ops/attention/attention_tile_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::attention::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kFewRows = 4;      // rows that read the keys directly, without a transpose
constexpr std::int64_t kPartKeys = 1024;  // keys of a part, where rows are few
constexpr std::int64_t kMostTileRows = 256;

/// Sums of rows so far: o is not yet divided by `sum`.
template <class R>
struct Sums {
    Sums(std::int64_t rows, std::int64_t vp)
        : o(static_cast<std::size_t>(rows * vp)),
          peak(static_cast<std::size_t>(rows), -std::numeric_limits<R>::infinity()),
          sum(static_cast<std::size_t>(rows)) {}
    std::vector<R> o, peak;
    std::vector<double> sum;
};

template <class R>
void scale_row(R* o, std::int64_t n, R factor) {
    const hn::ScalableTag<R> d;
    const auto f = hn::Set(d, factor);
    for (std::int64_t c = 0; c < n; c += static_cast<std::int64_t>(hn::Lanes(d)))
        hn::StoreU(hn::Mul(hn::LoadU(d, o + c), f), d, o + c);
}

/// One row of scores becomes weights exp(s - peak); what was summed before moves to the new peak.
template <class R>
void absorb(R* s, R found, R& peak, double& sum, R* o, std::int64_t vp) {
    const hn::ScalableTag<R> d;
    const R next = found > peak || std::isnan(found) ? found : peak;
    const R safe = std::isinf(next) && next < 0 ? R(0) : next;
    if (next != peak) {
        const R factor = std::exp(peak - safe);
        sum *= static_cast<double>(factor);
        scale_row(o, vp, factor);
        peak = next;
    }
    const auto shift = hn::Set(d, safe);
    auto total = hn::Zero(d);
    for (std::int64_t j = 0; j < kKeys; j += static_cast<std::int64_t>(hn::Lanes(d))) {
        const auto e = exp_of(d, hn::Sub(hn::LoadU(d, s + j), shift));
        total = hn::Add(total, e);
        hn::StoreU(e, d, s + j);
    }
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, total)));
}

/// Buffers of one thread.
template <class R>
struct Buffers {
    Buffers(const Extents& x, std::int64_t rows)
        : q(static_cast<std::size_t>(rows * x.ep)),
          s(static_cast<std::size_t>(rows * kKeys)),
          k(static_cast<std::size_t>(kKeys * x.ep)),
          kt(k.size()),
          v(static_cast<std::size_t>(kKeys * x.vp)) {}
    std::vector<R> q, s, k, kt, v;
};

template <class E, class B, class R>
void drop_row(const B& batch, std::int64_t r, std::int64_t j0, std::int64_t n, R* s) {
    HWY_ALIGN R factor[kKeys];
    batch.keep(r, j0, n, factor);
    for (std::int64_t j = 0; j < kKeys; j++) s[j] = factor[j] == R(0) ? R(0) : s[j] * factor[j];
}

/// Rows r0 .. r0 + rows against all keys they may see.
template <class E, class B, class R>
void attend_tile(const B& batch, std::int64_t r0, std::int64_t rows, Buffers<R>& buffers, Sums<R>& sums) {
    const Extents& x = batch.x;
    pack_rows<E>([&](std::int64_t i) { return batch.query(r0 + i); }, rows, x.E, x.ep, buffers.q.data());
    const std::int64_t end = x.keys_seen(r0, r0 + rows - 1);
    for (std::int64_t j0 = 0; j0 < end; j0 += kKeys) {
        const std::int64_t n = std::min(kKeys, end - j0);
        pack_rows<E>([&](std::int64_t j) { return batch.key(j0 + j); }, n, x.E, x.ep, buffers.k.data());
        transpose_tile(buffers.k.data(), x.ep, n, x.E, buffers.kt.data());
        R* s = buffers.s.data();
        product(s, kKeys, Left<R>{buffers.q.data(), x.ep, 1}, buffers.kt.data(), kKeys, rows, kKeys, x.E, false);
        for (std::int64_t i = 0; i < rows; i++) {
            R* row = s + i * kKeys;
            const auto at = static_cast<std::size_t>(i);
            const R found = batch.score(row, r0 + i, j0, n);
            absorb(row, found, sums.peak[at], sums.sum[at], sums.o.data() + i * x.vp, x.vp);
            if (x.threshold) drop_row<E>(batch, r0 + i, j0, n, row);
        }
        const R* v = buffers.v.data();
        std::int64_t ld = x.vp;
        bool direct = false;
        if constexpr (kIsValue<E>) {
            direct = x.vp == x.Ev;
            if (direct) v = batch.value(j0), ld = batch.spec[kValueRow];
        }
        if (!direct) pack_rows<E>([&](std::int64_t j) { return batch.value(j0 + j); }, n, x.Ev, x.vp, buffers.v.data());
        product(sums.o.data(), x.vp, Left<R>{s, kKeys, 1}, v, ld, rows, x.vp, n, true);
    }
}

/// Divides and writes rows, and their lse. `masked`: a row without keys gives 0.
template <class E, class B, class R>
void finish(const B& batch, std::int64_t r0, std::int64_t rows, Sums<R>& sums) {
    const Extents& x = batch.x;
    const bool masked = x.causal || batch.spec[kMask] != kNoMask;
    auto* output = reinterpret_cast<typename E::Stored*>(batch.a.output);
    for (std::int64_t i = 0; i < rows; i++) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t place = batch.index * x.rows + r0 + i;
        R* o = sums.o.data() + i * x.vp;
        const bool blocked = masked && std::isinf(sums.peak[at]) && sums.peak[at] < 0;
        if (blocked)
            std::fill(o, o + x.vp, R(0));
        else
            scale_row(o, x.vp, static_cast<R>(1 / sums.sum[at]));
        store_run<E>(o, x.Ev, 1, output + place * x.Ev);
        if (batch.a.lse)
            reinterpret_cast<R*>(batch.a.lse)[place] =
                static_cast<R>(static_cast<double>(sums.peak[at]) + std::log(sums.sum[at]));
    }
}

/// s = q k^T for rows few enough that a transpose would cost more than it saves.
template <class E, class B, class R>
void direct_scores(const B& batch, std::int64_t rows, std::int64_t j0, std::int64_t n, Buffers<R>& buffers) {
    const Extents& x = batch.x;
    const hn::ScalableTag<R> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::fill(buffers.s.begin(), buffers.s.end(), R(0));
    const bool in_place = kIsValue<E> && x.E == x.ep;
    for (std::int64_t j = 0; j < n; j++) {
        const R* k = buffers.k.data();
        if constexpr (kIsValue<E>)
            if (in_place) k = batch.key(j0 + j);
        if (!in_place) pack_rows<E>([&](std::int64_t) { return batch.key(j0 + j); }, 1, x.E, x.ep, buffers.k.data());
        for (std::int64_t i = 0; i < rows; i++) {
            const R* q = buffers.q.data() + i * x.ep;
            auto even = hn::Zero(d), odd = hn::Zero(d);
            std::int64_t e = 0;
            for (; e + 2 * lanes <= x.ep; e += 2 * lanes) {
                even = hn::MulAdd(hn::LoadU(d, q + e), hn::LoadU(d, k + e), even);
                odd = hn::MulAdd(hn::LoadU(d, q + e + lanes), hn::LoadU(d, k + e + lanes), odd);
            }
            for (; e < x.ep; e += lanes) even = hn::MulAdd(hn::LoadU(d, q + e), hn::LoadU(d, k + e), even);
            buffers.s[static_cast<std::size_t>(i * kKeys + j)] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
        }
    }
}

/// o += s v, one key after the other.
template <class E, class B, class R>
void direct_values(const B& batch, std::int64_t rows, std::int64_t j0, std::int64_t n, Buffers<R>& buffers, R* o) {
    const Extents& x = batch.x;
    const hn::ScalableTag<R> d;
    const bool in_place = kIsValue<E> && x.Ev == x.vp;
    for (std::int64_t j = 0; j < n; j++) {
        const R* v = buffers.v.data();
        if constexpr (kIsValue<E>)
            if (in_place) v = batch.value(j0 + j);
        if (!in_place) pack_rows<E>([&](std::int64_t) { return batch.value(j0 + j); }, 1, x.Ev, x.vp, buffers.v.data());
        for (std::int64_t i = 0; i < rows; i++) {
            const auto p = hn::Set(d, buffers.s[static_cast<std::size_t>(i * kKeys + j)]);
            for (std::int64_t c = 0; c < x.vp; c += static_cast<std::int64_t>(hn::Lanes(d)))
                hn::StoreU(hn::MulAdd(p, hn::LoadU(d, v + c), hn::LoadU(d, o + i * x.vp + c)), d, o + i * x.vp + c);
        }
    }
}

/// All rows of a batch, few of them, against keys first .. last.
template <class E, class B, class R>
void attend_part(const B& batch, std::int64_t first, std::int64_t last, Buffers<R>& buffers, Sums<R>& sums) {
    const Extents& x = batch.x;
    pack_rows<E>([&](std::int64_t i) { return batch.query(i); }, x.rows, x.E, x.ep, buffers.q.data());
    for (std::int64_t j0 = first; j0 < last; j0 += kKeys) {
        const std::int64_t n = std::min(kKeys, last - j0);
        direct_scores<E>(batch, x.rows, j0, n, buffers);
        for (std::int64_t i = 0; i < x.rows; i++) {
            R* row = buffers.s.data() + i * kKeys;
            const auto at = static_cast<std::size_t>(i);
            const R found = batch.score(row, i, j0, n);
            absorb(row, found, sums.peak[at], sums.sum[at], sums.o.data() + i * x.vp, x.vp);
            if (x.threshold) drop_row<E>(batch, i, j0, n, row);
        }
        direct_values<E>(batch, x.rows, j0, n, buffers, sums.o.data());
    }
}

/// Adds a later part to an earlier one.
template <class R>
void merge(Sums<R>& into, Sums<R>& part, std::int64_t rows, std::int64_t vp) {
    const hn::ScalableTag<R> d;
    for (std::int64_t i = 0; i < rows; i++) {
        const auto at = static_cast<std::size_t>(i);
        const R a = into.peak[at], b = part.peak[at], peak = a > b || std::isnan(a) ? a : b;
        if (std::isinf(peak) && peak < 0) continue;
        const R fa = std::exp(a - peak), fb = std::exp(b - peak);
        R* o = into.o.data() + i * vp;
        const R* more = part.o.data() + i * vp;
        const auto va = hn::Set(d, fa), vb = hn::Set(d, fb);
        for (std::int64_t c = 0; c < vp; c += static_cast<std::int64_t>(hn::Lanes(d)))
            hn::StoreU(hn::MulAdd(hn::LoadU(d, more + c), vb, hn::Mul(hn::LoadU(d, o + c), va)), d, o + c);
        into.sum[at] = into.sum[at] * static_cast<double>(fa) + part.sum[at] * static_cast<double>(fb);
        into.peak[at] = peak;
    }
}

template <class E>
void few_rows(const AttentionArgs& a, const Spec& spec, const Extents& x) {
    using R = typename E::Value;
    using B = Batch<E, AttentionArgs>;
    const std::int64_t keys = x.keys_seen(0, x.rows - 1), parts = (keys + kPartKeys - 1) / kPartKeys;
    std::vector<Sums<R>> sums(static_cast<std::size_t>(x.batches * parts), Sums<R>(x.rows, x.vp));
    const std::int64_t light =
        std::max<std::int64_t>(1, cpu::kGrain / std::max<std::int64_t>(1, std::min(keys, kPartKeys) * x.E));
    cpu::parallel_for(x.batches * parts, light, [&](std::int64_t begin, std::int64_t end) {
        Buffers<R> buffers(x, x.rows);
        for (std::int64_t t = begin; t < end; t++) {
            const std::int64_t first = t % parts * kPartKeys;
            attend_part<E>(B(a, spec, x, t / parts), first, std::min(keys, first + kPartKeys), buffers,
                           sums[static_cast<std::size_t>(t)]);
        }
    });
    for (std::int64_t n = 0; n < x.batches; n++) {
        Sums<R>& all = sums[static_cast<std::size_t>(n * parts)];
        for (std::int64_t part = 1; part < parts; part++)
            merge(all, sums[static_cast<std::size_t>(n * parts + part)], x.rows, x.vp);
        finish<E>(B(a, spec, x, n), 0, x.rows, all);
    }
}

template <class E>
void forward(const AttentionArgs& a, const Spec& spec) {
    using R = typename E::Value;
    using B = Batch<E, AttentionArgs>;
    const Extents x(a, spec);
    if (x.rows <= kFewRows) return few_rows<E>(a, spec, x);
    // A row's bits do not depend on its tile: tiles may follow the number of threads.
    std::int64_t tile = kMostTileRows;
    while (tile > 32 && x.batches * ((x.rows + tile - 1) / tile) < 4 * cpu::thread_count()) tile /= 2;
    const std::int64_t tiles = (x.rows + tile - 1) / tile;
    const std::int64_t light =
        std::max<std::int64_t>(1, cpu::kGrain * 8 / (std::min(tile, x.rows) * x.S * (x.E + x.Ev)));
    cpu::parallel_for(x.batches * tiles, light, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t most = std::min(tile, x.rows);
        Buffers<R> buffers(x, most);
        for (std::int64_t t = begin; t < end; t++) {
            // Zigzag: below a diagonal late tiles are the heavy ones, and threads take neighbours.
            const std::int64_t step = t % tiles, place = step % 2 ? tiles - 1 - step / 2 : step / 2;
            const std::int64_t r0 = place * tile, rows = std::min(tile, x.rows - r0);
            Sums<R> sums(rows, x.vp);
            const B batch(a, spec, x, t / tiles);
            attend_tile<E>(batch, r0, rows, buffers, sums);
            finish<E>(batch, r0, rows, sums);
        }
    });
}

void forward_run(const AttentionArgs& a, DType dtype, const Spec& spec) {
    with_element(dtype, [&](auto element) { forward<decltype(element)>(a, spec); });
}

template <class E>
void delta(const AttentionDeltaArgs& a) {
    using R = typename E::Value;
    const std::int64_t width = a.width;
    cpu::parallel_for(
        static_cast<std::int64_t>(a.rows), cpu::kGrain / std::max<std::int64_t>(1, width),
        [&](std::int64_t begin, std::int64_t end) {
            std::vector<R> o(static_cast<std::size_t>(width)), g(o.size());
            for (std::int64_t r = begin; r < end; r++) {
                load_run<E>(reinterpret_cast<const typename E::Stored*>(a.output) + r * width, 1, width, o.data());
                load_run<E>(reinterpret_cast<const typename E::Stored*>(a.grad) + r * width, 1, width, g.data());
                double sum = 0;
                for (std::size_t c = 0; c < o.size(); c++) sum += static_cast<double>(o[c]) * static_cast<double>(g[c]);
                R* stats = reinterpret_cast<R*>(a.stats) + 2 * r;
                stats[0] = reinterpret_cast<const R*>(a.lse)[r];
                stats[1] = static_cast<R>(sum);
            }
        });
}

void delta_run(const AttentionDeltaArgs& a, DType dtype) {
    with_element(dtype, [&](auto element) { delta<decltype(element)>(a); });
}

}  // namespace
}  // namespace vkml::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::attention {

namespace {
HWY_EXPORT(forward_run);
HWY_EXPORT(delta_run);
}  // namespace

void forward_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(forward_run)(*static_cast<const AttentionArgs*>(args), dtype, spec);
}
void delta_cpu(const void* args, DType dtype, const Spec&, Grid) {
    HWY_DYNAMIC_DISPATCH(delta_run)(*static_cast<const AttentionDeltaArgs*>(args), dtype);
}

}  // namespace vkml::attention
#endif
