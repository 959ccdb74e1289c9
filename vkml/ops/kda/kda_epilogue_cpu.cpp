#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/kda/kda_epilogue_cpu.cpp"
#include "hwy/foreach_target.h"
#include "vkml/ops/kda/kda_tile_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::kda::HWY_NAMESPACE {
namespace {

template <class R>
struct EpilogueScratch {
    explicit EpilogueScratch(const Extents& e)
        : f(e.kp),
          memory(
              static_cast<std::size_t>(64 * e.kp * 9 + 64 * e.vp * 2 + e.kp * e.vp + 2 * 4096 + 48 * e.kp + 9 * e.kp)) {
        R* at = memory.data();
        for (R** p : {&dqg, &hg, &dkt, &qrow, &krow, &col, &dg, &dq, &dk}) *p = at, at += 64 * e.kp;
        for (R** p : {&dv, &r_t}) *p = at, at += 64 * e.vp;
        s_t = at, at += e.kp * e.vp;
        for (R** p : {&da, &dkk}) *p = at, at += 4096;
        for (R** p : {&part_q, &part_k, &keys}) *p = at, at += 16 * e.kp;
        total = at, between = total + 4 * e.kp, p_last = between + e.kp, s_ds = p_last + e.kp;
    }
    Factors<R> f;
    std::vector<R> memory;
    R *dqg, *hg, *dkt, *qrow, *krow, *col, *dg, *dq, *dk;  // [64][kp]
    R *dv, *r_t;                                           // [64][vp], [vp][64]
    R* s_t;                                                // a state transposed
    R *da, *dkk;                                           // [64][64]
    R *part_q, *part_k, *keys;                             // [16][kp]
    R *total, *between, *p_last, *s_ds;                    // [4][kp], [kp]
};

/// out [64][kp] = rows [64][vp] state^T.
template <class R>
void times_state(const Extents& e, const R* rows, const R* state, R* transposed, R* out) {
    for (std::int64_t d = 0; d < e.kp; d++)
        for (std::int64_t c = 0; c < e.vp; c++) transposed[c * e.kp + d] = state[d * e.vp + c];
    std::fill(out, out + 64 * e.kp, R(0));
    product(out, e.kp, rows, e.vp, 1, transposed, e.kp, 64, e.kp, e.vp);
}

/// dv by back substitution, dv_j = beta_j (dU_j - sum over later rows i of KK_ij dv_i), and the gradient of beta.
template <class R>
void value_gradient(const Extents& e, const R* slot, EpilogueScratch<R>& s, R* dbeta) {
    const R *beta = slot + e.slot.b, *kk = slot + e.slot.kk, *r = slot + e.slot.r;
    std::copy(slot + e.slot.du, slot + e.slot.du + 64 * e.vp, s.dv);
    for (std::int64_t block = 48; block >= 0; block -= 16) {
        product<true>(s.dv + block * e.vp, e.vp, kk + (block + 16) * 64 + block, 1, 64, s.dv + (block + 16) * e.vp,
                      e.vp, 16, e.vp, 48 - block);
        for (std::int64_t j = block + 15; j >= block; j--) {
            R* row = s.dv + j * e.vp;
            product<true>(row, e.vp, kk + (j + 1) * 64 + j, 1, 64, row + e.vp, e.vp, 1, e.vp, block + 15 - j);
            dbeta[j] = dot(r + j * e.vp, row, e.vp);
            for (std::int64_t c = 0; c < e.vp; c++) row[c] *= beta[j];
        }
    }
}

/// The gradients of A and KK: dA_ij = beta_j dO_i . r_j, dKK_ij = -beta_j dv_i . r_j.
template <class R>
void pair_gradients(const Extents& e, const R* slot, EpilogueScratch<R>& s) {
    const R *beta = slot + e.slot.b, *r = slot + e.slot.r;
    for (std::int64_t i = 0; i < 64; i++)
        for (std::int64_t c = 0; c < e.vp; c++) s.r_t[c * 64 + i] = r[i * e.vp + c];
    std::fill(s.da, s.da + 2 * 4096, R(0));
    for (std::int64_t i = 0; i < 64; i += 16) {
        product(s.da + i * 64, 64, slot + e.slot.d_o + i * e.vp, e.vp, 1, s.r_t, 64, 16, i + 16, e.vp);
        product<true>(s.dkk + i * 64, 64, s.dv + i * e.vp, e.vp, 1, s.r_t, 64, 16, i + 16, e.vp);
    }
    for (std::int64_t i = 0; i < 64; i++)
        for (std::int64_t j = 0; j <= i; j++) {
            s.da[i * 64 + j] *= beta[j];
            s.dkk[i * 64 + j] *= beta[j];
        }
}

/// Pairs of rows in different 16-row blocks: what block `from` gets from block `to` before it, and the other way round.
template <class R>
void pairs_between(const Extents& e, EpilogueScratch<R>& s, std::int64_t from, std::int64_t to) {
    const std::int64_t kp = e.kp, count = 16 * kp, i0 = from * 16, j0 = to * 16;
    const R scale = static_cast<R>(e.scale);
    std::vector<R> decay(static_cast<std::size_t>(kp));
    decay_between(s.f, from, to, decay.data());
    for (std::int64_t j = 0; j < 16; j++)
        for (std::int64_t c = 0; c < kp; c++)
            s.keys[j * kp + c] = s.f.ke[(j0 + j) * kp + c] * decay[static_cast<std::size_t>(c)];
    std::fill(s.part_q, s.part_q + 2 * count, R(0));
    product(s.part_q, kp, s.da + i0 * 64 + j0, 64, 1, s.keys, kp, 16, kp, 16);
    product(s.part_k, kp, s.dkk + i0 * 64 + j0, 64, 1, s.keys, kp, 16, kp, 16);
    for (std::int64_t i = 0; i < 16; i++)
        for (std::int64_t c = 0; c < kp; c++) {
            const std::int64_t at = (i0 + i) * kp + c;
            const R p = s.f.p[at], q = scale * p * s.part_q[i * kp + c], k = p * s.part_k[i * kp + c];
            s.qrow[at] += q;
            s.krow[at] += k;
            // A pair that spans a block acts on every gate of that block.
            for (std::int64_t m = to + 1; m < from; m++) s.total[m * kp + c] += s.f.q[at] * q + s.f.k[at] * k;
        }
    std::fill(s.part_q, s.part_q + count, R(0));
    product(s.part_q, kp, s.da + i0 * 64 + j0, 1, 64, s.f.qp + i0 * kp, kp, 16, kp, 16);
    for (std::int64_t n = 0; n < count; n++) s.part_q[n] *= scale;
    product(s.part_q, kp, s.dkk + i0 * 64 + j0, 1, 64, s.f.kp_ + i0 * kp, kp, 16, kp, 16);
    for (std::int64_t j = 0; j < 16; j++)
        for (std::int64_t c = 0; c < kp; c++)
            s.col[(j0 + j) * kp + c] +=
                s.f.e[(j0 + j) * kp + c] * decay[static_cast<std::size_t>(c)] * s.part_q[j * kp + c];
}

/// Pairs inside one block, for the channels of a vector at c: products of exp(g) run down the rows.
template <class R>
void pairs_inside(const Extents& e, EpilogueScratch<R>& s, std::int64_t first, std::int64_t c) {
    const hn::ScalableTag<R> d;
    const std::int64_t kp = e.kp;
    hn::Vec<decltype(d)> decay[16];
    const auto scale = hn::Set(d, static_cast<R>(e.scale));
    for (std::int64_t j = 0; j < 15; j++) {
        const std::int64_t row = (first + j) * kp + c;
        const auto kj = hn::LoadU(d, s.f.k + row);
        auto running = hn::Set(d, R(1));
        for (std::int64_t i = j + 1; i < 16; i++)
            decay[i] = running = hn::Mul(running, hn::LoadU(d, s.f.a + (first + i) * kp + c));
        auto below = hn::Zero(d), column = hn::LoadU(d, s.col + row);
        for (std::int64_t i = 15; i > j; i--) {
            const std::int64_t at = (first + i) * kp + c, pair = (first + i) * 64 + first + j;
            const auto da = hn::Mul(scale, hn::Set(d, s.da[pair])), dkk = hn::Set(d, s.dkk[pair]);
            const auto kd = hn::Mul(kj, decay[i]);
            hn::StoreU(hn::MulAdd(da, kd, hn::LoadU(d, s.qrow + at)), d, s.qrow + at);
            hn::StoreU(hn::MulAdd(dkk, kd, hn::LoadU(d, s.krow + at)), d, s.krow + at);
            const auto both = hn::MulAdd(da, hn::LoadU(d, s.f.q + at), hn::Mul(dkk, hn::LoadU(d, s.f.k + at)));
            column = hn::MulAdd(both, decay[i], column);
            below = hn::MulAdd(both, kd, below);
            hn::StoreU(hn::Add(hn::LoadU(d, s.dg + at), below), d, s.dg + at);
        }
        hn::StoreU(column, d, s.col + row);
    }
}

/// Everything that reaches the gates without crossing out again (kda.md 5.1), for the channels of a vector at c;
/// expects the pairs of different blocks in qrow, krow and col. Leaves the products of the outer factors in dqg, hg and
/// dkt.
template <class R>
void gate_sums(const Extents& e, EpilogueScratch<R>& s, std::int64_t c) {
    const hn::ScalableTag<R> d;
    const std::int64_t kp = e.kp;
    const auto scale = hn::Set(d, static_cast<R>(e.scale));
    const auto at = [&](const R* x, std::int64_t row) HWY_ATTR { return hn::LoadU(d, x + row * kp + c); };
    hn::Vec<decltype(d)> before[5];
    before[0] = hn::Set(d, R(1));
    for (std::int64_t m = 0; m < 4; m++) before[m + 1] = hn::Mul(before[m], at(s.f.z, m));
    const auto through = hn::Mul(before[4], hn::LoadU(d, s.s_ds + c));
    auto later = hn::Zero(d), after = hn::Set(d, R(1));
    for (std::int64_t block = 3; block >= 0; block--) {
        auto own = hn::Zero(d);
        const auto always = hn::Add(at(s.total, block), through);
        for (std::int64_t i = block * 16 + 15; i >= block * 16; i--) {
            const auto p = hn::Mul(at(s.f.p, i), before[block]), q = at(s.f.q, i), k = at(s.f.k, i);
            const auto dqg = hn::Mul(hn::Mul(scale, p), at(s.dqg, i)), hg = hn::Mul(p, at(s.hg, i));
            const auto dkt = hn::Mul(hn::Mul(at(s.f.e, i), after), at(s.dkt, i));
            own = hn::Add(own, hn::MulAdd(q, at(s.qrow, i), hn::Mul(k, at(s.krow, i))));
            later = hn::Add(later, hn::NegMulAdd(k, hg, hn::Mul(q, dqg)));
            hn::StoreU(hn::Add(hn::Add(own, later), always), d, s.dg + i * kp + c);
            hn::StoreU(dqg, d, s.dqg + i * kp + c);
            hn::StoreU(hg, d, s.hg + i * kp + c);
            hn::StoreU(dkt, d, s.dkt + i * kp + c);
        }
        after = hn::Mul(after, at(s.f.z, block));
    }
    auto earlier = hn::Zero(d);
    for (std::int64_t block = 0; block < 4; block++) {
        auto inside = hn::Zero(d);
        for (std::int64_t j = block * 16; j < block * 16 + 16; j++) {
            hn::StoreU(hn::Add(at(s.dg, j), hn::Add(inside, earlier)), d, s.dg + j * kp + c);
            inside = hn::MulAdd(at(s.f.k, j), at(s.col, j), inside);
            earlier = hn::MulAdd(at(s.f.k, j), at(s.dkt, j), earlier);
        }
    }
}

template <class R>
void epilogue_head(const Extents& e, const R* slot, EpilogueScratch<R>& s, R* dbeta, bool first) {
    const std::int64_t kp = e.kp, count = 64 * kp;
    value_gradient(e, slot, s, dbeta);
    pair_gradients(e, slot, s);
    times_state(e, slot + e.slot.d_o, slot + e.slot.s, s.s_t, s.dqg);
    times_state(e, static_cast<const R*>(s.dv), slot + e.slot.s, s.s_t, s.hg);
    std::vector<R> u(slot + e.slot.r, slot + e.slot.r + 64 * e.vp);
    for (std::int64_t i = 0; i < 64; i++)
        for (std::int64_t c = 0; c < e.vp; c++) u[static_cast<std::size_t>(i * e.vp + c)] *= slot[e.slot.b + i];
    times_state(e, static_cast<const R*>(u.data()), slot + e.slot.ds, s.s_t, s.dkt);
    for (std::int64_t d = 0; d < kp; d++)
        s.s_ds[d] = dot(slot + e.slot.s + d * e.vp, slot + e.slot.ds + d * e.vp, e.vp);
    std::fill(s.qrow, s.qrow + 3 * count, R(0));
    std::fill(s.total, s.total + 4 * kp, R(0));
    for (std::int64_t from = 1; from < 4; from++)
        for (std::int64_t to = 0; to < from; to++) pairs_between(e, s, from, to);
    const hn::ScalableTag<R> d;
    for (std::int64_t c = 0; c < kp; c += static_cast<std::int64_t>(hn::Lanes(d))) gate_sums(e, s, c);
    for (std::int64_t block = 0; block < 4; block++)
        for (std::int64_t c = 0; c < kp; c += static_cast<std::int64_t>(hn::Lanes(d)))
            pairs_inside(e, s, block * 16, c);
    for (std::int64_t i = 0; i < 64; i++) {
        const R own = static_cast<R>(e.scale) * s.da[i * 64 + i];
        for (std::int64_t at = i * kp; at < (i + 1) * kp; at++) {
            const R dq = s.qrow[at] + own * s.f.k[at] + s.dqg[at];
            const R dk = s.krow[at] + s.col[at] + own * s.f.q[at] - s.hg[at] + s.dkt[at];
            s.dq[at] = first ? dq : s.dq[at] + dq;
            s.dk[at] = first ? dk : s.dk[at] + dk;
        }
    }
}

template <class E>
void store_rows(Address to, std::uint64_t offset, std::int64_t rows, std::int64_t width, const typename E::Value* from,
                std::int64_t ld) {
    auto* out = reinterpret_cast<typename E::Stored*>(to) + offset;
    for (std::int64_t i = 0; i < rows; i++) store_run<E>(from + i * ld, width, 1, out + i * width);
}

/// One tile of one query head: its value heads one after the other.
template <class E>
void epilogue_tile(const KdaEpilogueArgs& a, const Spec& spec, const Extents& e, std::int64_t index,
                   EpilogueScratch<typename E::Value>& s) {
    using R = typename E::Value;
    using Wide = WideOf<E>;
    const std::int64_t query_head = index / e.tiles, tile = index % e.tiles, t0 = (a.tile0 + tile) * 64;
    const std::int64_t rows = std::min<std::int64_t>(64, a.tokens - t0);
    const auto t = static_cast<std::uint64_t>(t0), tokens = static_cast<std::uint64_t>(a.tokens);
    R dbeta[64];
    for (std::int64_t g = 0; g < e.group; g++) {
        const std::int64_t local = query_head * e.group + g, head = a.head0 + local;
        const auto b = static_cast<std::uint64_t>(head / e.HV), hv = static_cast<std::uint64_t>(head % e.HV),
                   h = hv / static_cast<std::uint64_t>(e.group);
        const R* slot = reinterpret_cast<const R*>(a.workspace) + (local * e.tiles + tile) * e.slot.size;
        load_rows<E>(a.query, b * a.q_b + h * a.q_h + t * a.q_t, a.q_t, spec[kQueryStep], rows, e.K, e.kp, s.f.q);
        load_rows<E>(a.key, b * a.k_b + h * a.k_h + t * a.k_t, a.k_t, spec[kKeyStep], rows, e.K, e.kp, s.f.k);
        load_rows<Wide>(a.log_decay, b * a.g_b + hv * a.g_h + t * a.g_t, a.g_t, spec[kDecayStep], rows, e.K, e.kp,
                        s.f.g);
        clamp_decay(s.f.g, 64 * e.kp);
        s.f.compute();
        epilogue_head(e, slot, s, dbeta, g == 0);
        const std::uint64_t row = static_cast<std::uint64_t>(head) * tokens + t;
        store_rows<E>(a.grad_value, row * static_cast<std::uint64_t>(e.V), rows, e.V, s.dv, e.vp);
        store_rows<Wide>(a.grad_log_decay, row * static_cast<std::uint64_t>(e.K), rows, e.K, s.dg, e.kp);
        store_rows<Wide>(a.grad_beta, row, rows, 1, dbeta, 1);
    }
    const std::uint64_t row =
        (static_cast<std::uint64_t>(a.head0 / e.group + query_head) * tokens + t) * static_cast<std::uint64_t>(e.K);
    store_rows<E>(a.grad_query, row, rows, e.K, s.dq, e.kp);
    store_rows<E>(a.grad_key, row, rows, e.K, s.dk, e.kp);
}

void epilogue_run(const KdaEpilogueArgs& a, DType dtype, const Spec& spec, Grid grid) {
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        const Extents e = extents_of(spec);
        cpu::parallel_for(grid.x, 1, [&](std::int64_t begin, std::int64_t end) {
            EpilogueScratch<typename E::Value> scratch(e);
            for (std::int64_t i = begin; i < end; i++) epilogue_tile<E>(a, spec, e, i, scratch);
        });
    });
}

}  // namespace
}  // namespace vkml::kda::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::kda {
namespace {
HWY_EXPORT(epilogue_run);
}  // namespace

void epilogue_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(epilogue_run)(*static_cast<const KdaEpilogueArgs*>(args), dtype, spec, grid);
}

}  // namespace vkml::kda
#endif
