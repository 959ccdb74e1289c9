#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/kda/kda_scan_cpu.cpp"
#include "hwy/foreach_target.h"
#include "vkml/ops/kda/kda_tile_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::kda::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kColumns = 64;  // value columns of one task

/// Columns c0 on of the state of a head, [kp][n]; absent ones are 0.
template <class R, class Args>
void load_state(const Args& a, const Extents& e, std::int64_t head, std::int64_t c0, std::int64_t n, R* out) {
    std::fill(out, out + e.kp * n, R(0));
    if (!a.state_in) return;
    const auto b = static_cast<std::uint64_t>(head / e.HV), hv = static_cast<std::uint64_t>(head % e.HV);
    const R* p = reinterpret_cast<const R*>(a.state_in) + b * a.s_b + hv * a.s_h;
    for (std::int64_t d = 0; d < e.K; d++)
        for (std::int64_t c = c0; c < std::min(c0 + n, e.V); c++)
            out[d * n + c - c0] = p[static_cast<std::uint64_t>(d) * a.s_k + static_cast<std::uint64_t>(c) * a.s_v];
}

/// The same columns to a packed [K, V].
template <class R>
void store_state(R* to, const Extents& e, std::int64_t c0, std::int64_t n, const R* state) {
    const std::int64_t count = std::min(n, e.V - c0);
    for (std::int64_t d = 0; d < e.K; d++) std::copy(state + d * n, state + d * n + count, to + d * e.V + c0);
}

template <class R>
void copy_columns(const R* from, std::int64_t from_ld, R* to, std::int64_t to_ld, std::int64_t rows, std::int64_t n) {
    for (std::int64_t i = 0; i < rows; i++) std::copy(from + i * from_ld, from + i * from_ld + n, to + i * to_ld);
}

template <class E>
void scan_head(const KdaScanArgs& a, const Extents& e, std::int64_t local, std::int64_t c0) {
    using R = typename E::Value;
    const std::int64_t head = a.head0 + local, n = std::min(kColumns, e.vp - c0);
    std::vector<R> state(static_cast<std::size_t>(e.kp * n)), u(static_cast<std::size_t>(64 * n)), o(u.size());
    load_state(a, e, head, c0, n, state.data());
    for (std::int64_t tile = 0; tile < e.tiles; tile++) {
        R* slot = reinterpret_cast<R*>(a.workspace) + (local * e.tiles + tile) * e.slot.size;
        R* r = slot + e.slot.r + c0;
        const std::int64_t at = a.tile0 + tile, rows = std::min<std::int64_t>(64, a.tokens - at * 64);
        if (e.keep) copy_columns(state.data(), n, slot + e.slot.s + c0, e.vp, e.kp, n);
        if (a.boundaries && at % a.spacing == 0) {
            const std::uint64_t place =
                static_cast<std::uint64_t>(at / a.spacing) * a.heads + static_cast<std::uint64_t>(head);
            store_state(reinterpret_cast<R*>(a.boundaries) + place * static_cast<std::uint64_t>(e.K * e.V), e, c0, n,
                        state.data());
        }
        product<true>(r, e.vp, slot + e.slot.w, e.kp, 1, state.data(), n, rows, n, e.kp);
        std::fill(u.begin(), u.end(), R(0));
        for (std::int64_t i = 0; i < rows; i++)
            for (std::int64_t c = 0; c < n; c++)
                u[static_cast<std::size_t>(i * n + c)] = slot[e.slot.b + i] * r[i * e.vp + c];
        if (a.output) {
            std::fill(o.begin(), o.end(), R(0));
            product(o.data(), n, slot + e.slot.qg, e.kp, 1, state.data(), n, rows, n, e.kp);
            for (int block = 0; block * 16 < rows; block++)
                lower_product(o.data() + block * 16 * n, n, slot + e.slot.a, u.data(), n, n, block);
            auto* out = reinterpret_cast<typename E::Stored*>(a.output) +
                        (static_cast<std::uint64_t>(head) * a.tokens + static_cast<std::uint64_t>(at * 64)) *
                            static_cast<std::uint64_t>(e.V) +
                        c0;
            for (std::int64_t i = 0; i < rows; i++)
                store_run<E>(o.data() + i * n, std::min(n, e.V - c0), 1, out + i * e.V);
        }
        fade(state.data(), n, slot + e.slot.gs, e.kp, n);
        product(state.data(), n, slot + e.slot.kt, 1, e.kp, u.data(), n, e.kp, n, rows);
    }
    if (a.state_out) store_state(reinterpret_cast<R*>(a.state_out) + head * e.K * e.V, e, c0, n, state.data());
}

template <class E>
void reverse_head(const KdaReverseArgs& a, const Spec& spec, const Extents& e, std::int64_t local, std::int64_t c0) {
    using R = typename E::Value;
    const std::int64_t head = a.head0 + local, n = std::min(kColumns, e.vp - c0), count = std::min(n, e.V - c0);
    const auto b = static_cast<std::uint64_t>(head / e.HV), hv = static_cast<std::uint64_t>(head % e.HV);
    std::vector<R> state(static_cast<std::size_t>(e.kp * n)), g(static_cast<std::size_t>(64 * n)), du(g.size());
    load_state(a, e, head, c0, n, state.data());
    for (std::int64_t tile = e.tiles - 1; tile >= 0; tile--) {
        R* slot = reinterpret_cast<R*>(a.workspace) + (local * e.tiles + tile) * e.slot.size;
        const std::int64_t t0 = (a.tile0 + tile) * 64, rows = std::min<std::int64_t>(64, a.tokens - t0);
        const std::uint64_t offset = b * a.o_b + hv * a.o_h + static_cast<std::uint64_t>(t0) * a.o_t +
                                     static_cast<std::uint64_t>(c0) * spec[kOutputStep];
        if (a.grad_output) load_rows<E>(a.grad_output, offset, a.o_t, spec[kOutputStep], rows, count, n, g.data());
        copy_columns(state.data(), n, slot + e.slot.ds + c0, e.vp, e.kp, n);
        copy_columns(g.data(), n, slot + e.slot.d_o + c0, e.vp, 64, n);
        std::fill(du.begin(), du.end(), R(0));
        for (std::int64_t block = 0; block < 4; block++) {
            const std::int64_t i = block * 16;
            product(du.data() + i * n, n, slot + e.slot.a + i * 64 + i, 1, 64, g.data() + i * n, n, 16, n, 64 - i);
        }
        product(du.data(), n, slot + e.slot.kt, e.kp, 1, state.data(), n, 64, n, e.kp);
        copy_columns(du.data(), n, slot + e.slot.du + c0, e.vp, 64, n);
        for (std::int64_t i = 0; i < 64; i++)
            for (std::int64_t c = 0; c < n; c++) du[static_cast<std::size_t>(i * n + c)] *= slot[e.slot.b + i];
        fade(state.data(), n, slot + e.slot.gs, e.kp, n);
        product(state.data(), n, slot + e.slot.qg, 1, e.kp, g.data(), n, e.kp, n, 64);
        product<true>(state.data(), n, slot + e.slot.w, 1, e.kp, du.data(), n, e.kp, n, 64);
    }
    store_state(reinterpret_cast<R*>(a.state_out) + head * e.K * e.V, e, c0, n, state.data());
}

void scan_run(const KdaScanArgs& a, DType dtype, const Spec& spec, Grid grid) {
    with_element(dtype, [&](auto element) {
        const Extents e = extents_of(spec);
        const std::int64_t slices = (e.vp + kColumns - 1) / kColumns;
        cpu::parallel_for(grid.x * slices, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; i++)
                scan_head<decltype(element)>(a, e, i / slices, i % slices * kColumns);
        });
    });
}

void reverse_run(const KdaReverseArgs& a, DType dtype, const Spec& spec, Grid grid) {
    with_element(dtype, [&](auto element) {
        const Extents e = extents_of(spec);
        const std::int64_t slices = (e.vp + kColumns - 1) / kColumns;
        cpu::parallel_for(grid.x * slices, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; i++)
                reverse_head<decltype(element)>(a, spec, e, i / slices, i % slices * kColumns);
        });
    });
}

/// The states inside a tile, from the one before it and the tile's updates, token by token.
template <class E>
void boundary_tile(const KdaBoundaryArgs& a, const Spec& spec, const Extents& e, std::int64_t index) {
    using R = typename E::Value;
    const std::int64_t head = a.head0 + index / e.tiles, t0 = (a.tile0 + index % e.tiles) * 64;
    const std::int64_t rows = std::min<std::int64_t>(64, a.tokens - t0), spacing = a.spacing;
    const auto b = static_cast<std::uint64_t>(head / e.HV), hv = static_cast<std::uint64_t>(head % e.HV),
               h = hv / static_cast<std::uint64_t>(e.group);
    const auto t = static_cast<std::uint64_t>(t0);
    std::vector<R> k(static_cast<std::size_t>(64 * e.kp)), g(k.size()), state(static_cast<std::size_t>(e.kp * e.vp)),
        u(static_cast<std::size_t>(e.vp));
    load_rows<E>(a.key, b * a.k_b + h * a.k_h + t * a.k_t, a.k_t, spec[kKeyStep], rows, e.K, e.kp, k.data());
    load_rows<WideOf<E>>(a.log_decay, b * a.g_b + hv * a.g_h + t * a.g_t, a.g_t, spec[kDecayStep], rows, e.K, e.kp,
                         g.data());
    clamp_decay(g.data(), 64 * e.kp);
    const R* slot = reinterpret_cast<const R*>(a.workspace) + index * e.slot.size;
    std::copy(slot + e.slot.s, slot + e.slot.s + e.kp * e.vp, state.begin());
    for (std::int64_t i = 0; i < rows; i++) {
        if ((t0 + i) % spacing == 0) {
            const std::uint64_t place =
                static_cast<std::uint64_t>((t0 + i) / spacing) * a.heads + static_cast<std::uint64_t>(head);
            R* out = reinterpret_cast<R*>(a.boundaries) + place * static_cast<std::uint64_t>(e.K * e.V);
            copy_columns(state.data(), e.vp, out, e.V, e.K, e.V);
        }
        for (std::int64_t c = 0; c < e.vp; c++)
            u[static_cast<std::size_t>(c)] = slot[e.slot.b + i] * slot[e.slot.r + i * e.vp + c];
        fade(state.data(), e.vp, g.data() + i * e.kp, e.kp, e.vp);
        product(state.data(), e.vp, k.data() + i * e.kp, 1, 1, u.data(), e.vp, e.kp, e.vp, 1);
    }
}

void boundary_run(const KdaBoundaryArgs& a, DType dtype, const Spec& spec, Grid grid) {
    with_element(dtype, [&](auto element) {
        const Extents e = extents_of(spec);
        cpu::parallel_for(grid.x, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; i++) boundary_tile<decltype(element)>(a, spec, e, i);
        });
    });
}

}  // namespace
}  // namespace vkml::kda::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::kda {
namespace {
HWY_EXPORT(scan_run);
HWY_EXPORT(reverse_run);
HWY_EXPORT(boundary_run);
}  // namespace

void scan_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(scan_run)(*static_cast<const KdaScanArgs*>(args), dtype, spec, grid);
}
void reverse_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(reverse_run)(*static_cast<const KdaReverseArgs*>(args), dtype, spec, grid);
}
void boundary_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(boundary_run)(*static_cast<const KdaBoundaryArgs*>(args), dtype, spec, grid);
}

}  // namespace vkml::kda
#endif
