#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/attention/attention_backward_cpu.cpp"
#include "hwy/foreach_target.h"
#include "vkml/ops/attention/attention_tile_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::attention::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kRows = 64;  // query rows of a tile

/// Buffers of one thread. Rows are padded to ep and vp columns, tiles to kKeys.
template <class R>
struct Buffers {
    explicit Buffers(const Extents& x)
        : q(static_cast<std::size_t>(kRows * x.ep)),
          k(static_cast<std::size_t>(kKeys * x.ep)),
          kt(k.size()),
          g(static_cast<std::size_t>(kRows * x.vp)),
          v(static_cast<std::size_t>(kKeys * x.vp)),
          vt(v.size()),
          p(static_cast<std::size_t>(kRows * kKeys)),
          ds(p.size()),
          dk(k.size()),
          dv(v.size()) {}
    std::vector<R> q, k, kt, g, v, vt, p, ds, dk, dv;
};

template <class E>
struct Job {
    using R = typename E::Value;
    using B = Batch<E, AttentionBackwardArgs>;
    const AttentionBackwardArgs& a;
    const Spec& spec;
    const Extents& x;

    void load_keys(const B& batch, std::int64_t j0, std::int64_t n, Buffers<R>& w) const {
        pack_rows<E>([&](std::int64_t j) { return batch.key(j0 + j); }, n, x.E, x.ep, w.k.data());
        pack_rows<E>([&](std::int64_t j) { return batch.value(j0 + j); }, n, x.Ev, x.vp, w.v.data());
        transpose_tile(w.k.data(), x.ep, n, x.E, w.kt.data());
        transpose_tile(w.v.data(), x.vp, n, x.Ev, w.vt.data());
    }

    void load_rows(const B& batch, std::int64_t r0, std::int64_t rows, Buffers<R>& w) const {
        const auto* grad = reinterpret_cast<const typename E::Stored*>(a.grad);
        pack_rows<E>([&](std::int64_t i) { return batch.query(r0 + i); }, rows, x.E, x.ep, w.q.data());
        pack_rows<E>([&](std::int64_t i) { return grad + (batch.index * x.rows + r0 + i) * x.Ev; }, rows, x.Ev, x.vp,
                     w.g.data());
    }

    /// Of the loaded rows and keys: the weights in p, with dropout, and the gradient of the products in ds.
    void compute(const B& batch, std::int64_t r0, std::int64_t rows, std::int64_t j0, std::int64_t n,
                 Buffers<R>& w) const {
        product(w.p.data(), kKeys, Left<R>{w.q.data(), x.ep, 1}, w.kt.data(), kKeys, rows, kKeys, x.E, false);
        product(w.ds.data(), kKeys, Left<R>{w.g.data(), x.vp, 1}, w.vt.data(), kKeys, rows, kKeys, x.Ev, false);
        const hn::ScalableTag<R> d;
        HWY_ALIGN R factor[kKeys];
        std::fill(factor, factor + kKeys, R(1));
        for (std::int64_t i = 0; i < rows; i++) {
            R *p = w.p.data() + i * kKeys, *ds = w.ds.data() + i * kKeys;
            const R* stats = reinterpret_cast<const R*>(a.stats) + 2 * (batch.index * x.rows + r0 + i);
            batch.score(p, r0 + i, j0, n);
            if (std::isinf(stats[0]) && stats[0] < 0) {  // a row that saw nothing
                std::fill(p, p + kKeys, R(0));
                std::fill(ds, ds + kKeys, R(0));
                continue;
            }
            if (x.threshold) batch.keep(r0 + i, j0, n, factor);
            const auto lse = hn::Set(d, stats[0]), delta = hn::Set(d, stats[1]);
            const auto scale = hn::Set(d, static_cast<R>(x.scale));
            for (std::int64_t j = 0; j < kKeys; j += static_cast<std::int64_t>(hn::Lanes(d))) {
                const auto f = hn::Load(d, factor + j);
                const auto weight = exp_of(d, hn::Sub(hn::LoadU(d, p + j), lse));
                const auto slope = hn::Sub(hn::Mul(hn::LoadU(d, ds + j), f), delta);
                hn::StoreU(hn::Mul(hn::Mul(weight, slope), scale), d, ds + j);
                hn::StoreU(hn::Mul(weight, f), d, p + j);
            }
        }
    }

    void add_query(R* dq, std::int64_t rows, std::int64_t n, Buffers<R>& w) const {
        product(dq, x.ep, Left<R>{w.ds.data(), kKeys, 1}, w.k.data(), x.ep, rows, x.ep, n, true);
    }
    void add_keys(std::int64_t rows, std::int64_t n, Buffers<R>& w) const {
        if (a.second) product(w.dv.data(), x.vp, Left<R>{w.p.data(), 1, kKeys}, w.g.data(), x.vp, n, x.vp, rows, true);
        if (a.first) product(w.dk.data(), x.ep, Left<R>{w.ds.data(), 1, kKeys}, w.q.data(), x.ep, n, x.ep, rows, true);
    }

    void store_keys(std::int64_t index, std::int64_t j0, std::int64_t n, Buffers<R>& w) const {
        using Stored = typename E::Stored;
        for (std::int64_t j = 0; j < n; j++) {
            const std::int64_t at = index * x.S + j0 + j;
            if (a.first) store_run<E>(w.dk.data() + j * x.ep, x.E, 1, reinterpret_cast<Stored*>(a.first) + at * x.E);
            if (a.second)
                store_run<E>(w.dv.data() + j * x.vp, x.Ev, 1, reinterpret_cast<Stored*>(a.second) + at * x.Ev);
        }
    }
    void store_query(typename E::Stored* to, std::int64_t index, std::int64_t r0, std::int64_t rows,
                     const R* dq) const {
        for (std::int64_t i = 0; i < rows; i++)
            store_run<E>(dq + i * x.ep, x.E, 1, to + (index * x.rows + r0 + i) * x.E);
    }

    /// The first tile of rows that may see key j0.
    std::int64_t first_row(std::int64_t j0) const { return x.causal && x.G == 1 ? j0 / kRows * kRows : 0; }

    /// Gradients of one tile of keys; with dq ([rows][ep] of the batch) that of the rows too.
    void key_tile(const B& batch, std::int64_t j0, R* dq, Buffers<R>& w) const {
        const std::int64_t n = std::min(kKeys, x.S - j0);
        load_keys(batch, j0, n, w);
        std::fill(w.dk.begin(), w.dk.end(), R(0));
        std::fill(w.dv.begin(), w.dv.end(), R(0));
        for (std::int64_t r0 = first_row(j0); r0 < x.rows; r0 += kRows) {
            const std::int64_t rows = std::min(kRows, x.rows - r0);
            if (x.keys_seen(r0, r0 + rows - 1) <= j0) continue;
            load_rows(batch, r0, rows, w);
            compute(batch, r0, rows, j0, n, w);
            add_keys(rows, n, w);
            if (dq) add_query(dq + r0 * x.ep, rows, n, w);
        }
        store_keys(batch.index, j0, n, w);
    }

    void query_tile(const B& batch, std::int64_t r0, std::int64_t rows, R* dq, Buffers<R>& w) const {
        const std::int64_t end = x.keys_seen(r0, r0 + rows - 1);
        load_rows(batch, r0, rows, w);
        for (std::int64_t j0 = 0; j0 < end; j0 += kKeys) {
            const std::int64_t n = std::min(kKeys, x.S - j0);
            load_keys(batch, j0, n, w);
            compute(batch, r0, rows, j0, n, w);
            add_query(dq, rows, n, w);
        }
    }
};

/// Batches one by one, with every product made once: for more batches than threads.
template <class E>
void backward_batches(const Job<E>& job, typename E::Stored* query) {
    using R = typename E::Value;
    const Extents& x = job.x;
    cpu::parallel_for(x.batches, 1, [&](std::int64_t begin, std::int64_t end) {
        Buffers<R> w(x);
        std::vector<R> dq(static_cast<std::size_t>(query ? x.rows * x.ep : 0));
        for (std::int64_t n = begin; n < end; n++) {
            const typename Job<E>::B batch(job.a, job.spec, x, n);
            std::fill(dq.begin(), dq.end(), R(0));
            for (std::int64_t j0 = 0; j0 < x.S; j0 += kKeys) job.key_tile(batch, j0, query ? dq.data() : nullptr, w);
            if (query) job.store_query(query, n, 0, x.rows, dq.data());
        }
    });
}

/// Tiles of keys, then tiles of rows, which computes the weights twice but fills the threads. The same bits.
template <class E>
void backward_tiles(const Job<E>& job, typename E::Stored* query) {
    using R = typename E::Value;
    const Extents& x = job.x;
    const std::int64_t key_tiles = (x.S + kKeys - 1) / kKeys, row_tiles = (x.rows + kRows - 1) / kRows;
    if (job.a.first || job.a.second)
        cpu::parallel_for(x.batches * key_tiles, 1, [&](std::int64_t begin, std::int64_t end) {
            Buffers<R> w(x);
            for (std::int64_t t = begin; t < end; t++)
                job.key_tile({job.a, job.spec, x, t / key_tiles}, t % key_tiles * kKeys, nullptr, w);
        });
    if (query)
        cpu::parallel_for(x.batches * row_tiles, 1, [&](std::int64_t begin, std::int64_t end) {
            Buffers<R> w(x);
            std::vector<R> dq(static_cast<std::size_t>(kRows * x.ep));
            for (std::int64_t t = begin; t < end; t++) {
                const std::int64_t r0 = t % row_tiles * kRows, rows = std::min(kRows, x.rows - r0);
                std::fill(dq.begin(), dq.end(), R(0));
                job.query_tile({job.a, job.spec, x, t / row_tiles}, r0, rows, dq.data(), w);
                job.store_query(query, t / row_tiles, r0, rows, dq.data());
            }
        });
}

template <class E>
void backward(const AttentionBackwardArgs& a, const Spec& spec) {
    const Extents x(a, spec);
    const Job<E> job{a, spec, x};
    const std::uint64_t address = static_cast<std::uint64_t>(spec[kQueryHigh]) << 32 | spec[kQueryLow];
    auto* query = reinterpret_cast<typename E::Stored*>(address);
    if (x.batches >= 2 * cpu::thread_count() || cpu::thread_count() == 1)
        backward_batches<E>(job, query);
    else
        backward_tiles<E>(job, query);
}

void backward_run(const AttentionBackwardArgs& a, DType dtype, const Spec& spec) {
    with_element(dtype, [&](auto element) { backward<decltype(element)>(a, spec); });
}

}  // namespace
}  // namespace vkml::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::attention {
namespace {
HWY_EXPORT(backward_run);
}  // namespace

void backward_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(backward_run)(*static_cast<const AttentionBackwardArgs*>(args), dtype, spec);
}

}  // namespace vkml::attention
#endif
