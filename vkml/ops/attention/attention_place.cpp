#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "vkml/autograd/grad_mode.h"
#include "vkml/autograd/node.h"
#include "vkml/ops/attention/attention.h"
#include "vkml/ops/attention/attention_internal.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/cooperative.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/registry.h"

namespace vkml::attention {
namespace {

constexpr std::int64_t kMostStride = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMostWidth = 256, kMostWide = 128;  // columns of the Vulkan kernels
constexpr std::uint32_t kWideShared = 20480;               // bytes
constexpr std::uint32_t kMatrixShared = 49152, kEmulatedShared = 24576;
constexpr std::int64_t kMostExact = 1 << 24;  // numbers of keys that a float tells apart
constexpr std::int64_t kSplitRows = 16, kSplitColumns = 512;

/// Strides of a view along [B, heads, rows, columns]; false if the outer axes have no common one, or one is too long.
bool strides_of(const Layout& x, Placed& out) {
    const int rank = x.rank(), outer = rank - 3;
    std::int64_t b = 0, inside = 1;  // the stride of the merged outer axes, and how many the inner ones hold
    bool first = true;
    for (int i = outer - 1; i >= 0; i--) {
        if (x.shape[i] == 1) continue;
        if (first)
            b = x.strides[i];
        else if (x.strides[i] != b * inside)
            return false;
        first = false;
        inside *= x.shape[i];
    }
    const auto stride = [&](int axis) { return axis >= 0 && x.shape[axis] > 1 ? x.strides[axis] : std::int64_t{0}; };
    const std::int64_t found[] = {b, stride(rank - 3), stride(rank - 2), stride(rank - 1)};
    for (std::int64_t s : found)
        if (s < 0 || s > kMostStride) return false;
    out.b = static_cast<std::uint32_t>(b), out.h = static_cast<std::uint32_t>(found[1]);
    out.row = static_cast<std::uint32_t>(found[2]), out.column = static_cast<std::uint32_t>(found[3]);
    return true;
}

Shape shape_of(const Shape& lead, std::int64_t heads, std::int64_t rows, std::int64_t columns) {
    Shape shape = lead;
    if (!shape.empty()) shape[shape.size() - 1] = heads;
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
}

Placed place_operand(const Call& call, const Tensor& t, std::int64_t heads, const char*& cannot) {
    const NoGrad off;
    const Shape shape = shape_of(call.lead, heads, t.size(-2), t.size(-1));
    Placed out{t.view(t.layout())};
    const auto fits = [&] {
        return strides_of(expand(out.tensor.layout(), shape), out) && (out.column == 1 || t.size(-1) <= 1);
    };
    if (!fits()) {
        out.tensor = contiguous(out.tensor);
        if (!fits()) {
            out.tensor = contiguous(expand(t.view(t.layout()), shape));
            if (!fits()) cannot = "a stride of query, key or value is 2^32 or more";
        }
    }
    out.column = 1;
    return out;
}

/// One element per axis that only repeats.
Tensor unrepeated(Tensor t) {
    for (int i = 0; i < t.ndim(); i++)
        if (t.size(i) > 1 && t.strides()[i] == 0) t = narrow(t, i, 0, 1);
    return t;
}

Placed place_mask(const Call& call, Problem& p) {
    Placed out;
    if (!call.mask.defined()) return out;
    const NoGrad off;
    const DType own = call.query.dtype(), wide = p.is_f64 ? DType::f64 : DType::f32;
    Tensor mask = call.mask.view(call.mask.layout());
    const DType is = mask.dtype();
    if (is != DType::boolean && is != own && is != wide) mask = cast(unrepeated(mask), wide);
    p.mask_kind = mask.dtype() == DType::boolean ? kBoolMask : mask.dtype() == own ? kElementMask : kFloatMask;
    out.tensor = mask;
    if (!strides_of(expand(mask.layout(), shape_of(call.lead, call.query_heads, call.L, call.S)), out))
        p.cannot = "the outer axes of attn_mask have no common stride";
    return out;
}

bool has_vectors(const Problem& p, DType dtype) {
    const auto item = static_cast<std::uint64_t>(itemsize(dtype));
    const auto even = [&](std::uint64_t elements) { return elements * item % 16 == 0; };
    bool all = even(static_cast<std::uint64_t>(p.E)) && even(static_cast<std::uint64_t>(p.Ev));
    for (const Placed* x : {&p.query, &p.key, &p.value})
        all = all && x->tensor.address() % 16 == 0 && even(x->b) && even(x->h) && even(x->row);
    return all;
}

std::atomic<int> forced{-1};

struct Choice {
    const Call* call;
    const Problem* p;
};

/// What every kernel needs.
const char* refuses_all(const Choice& c, Path path) {
    const int name = forced.load(std::memory_order_relaxed);
    if (name >= 0 && name != static_cast<int>(path)) return "another path is asked for by name";
    if (c.call->empty()) return "there is nothing to add up";
    if (c.p->cannot) return c.p->cannot;
    const TensorArg mask[] = {c.call->mask.defined() ? c.call->mask : c.call->query};
    if (c.call->mask.defined() && tracks(mask)) return "attn_mask wants a gradient";
    if (c.p->rows() >= 0x7fffffff || c.p->S >= 0x7fffffff || c.p->batches() >= 0x7fffffff)
        return "an extent is 2^31 or more";
    return nullptr;
}

const char* refuses_tiled(const Choice& c, const Limits&) {
    if (!c.p->is_cpu) return "the CPU's form";
    return refuses_all(c, Path::tiled);
}

const char* refuses_vulkan(const Choice& c, const Limits& limits, Path path) {
    if (c.p->is_cpu) return "a Vulkan kernel";
    if (const char* why = refuses_all(c, path)) return why;
    if (c.p->E > kMostWidth || c.p->Ev > kMostWidth) return "rows of more than 256 columns do not fit the registers";
    if (c.p->is_f64 && !limits.f64) return "the device has no float64";
    return nullptr;
}

const char* refuses_split(const Choice& c, const Limits& limits) {
    if (const char* why = refuses_vulkan(c, limits, Path::split)) return why;
    // Never by the batch: a batch element has the same bits whatever others there are.
    if (forced.load(std::memory_order_relaxed) == static_cast<int>(Path::split)) return nullptr;
    if (c.p->rows() > kSplitRows) return "enough rows for a tile";
    return c.p->S < kSplitColumns ? "too few keys to share out" : nullptr;
}

/// What the kernels on cooperative matrices need of the tensors.
const char* refuses_matrices(const Choice& c, const Limits& limits, Path path) {
    if (const char* why = refuses_vulkan(c, limits, path)) return why;
    const DType dtype = c.call->query.dtype();
    if (dtype != DType::f16 && dtype != DType::bf16) return "the tensors are not of 16 bits";
    if (c.p->E > kMostWide || c.p->Ev > kMostWide) return "more than 128 columns do not fit the registers";
    if (!c.p->vectors) return "a row does not begin at 16 bytes";
    if (forced.load(std::memory_order_relaxed) == static_cast<int>(path)) return nullptr;
    return c.p->rows() <= 32 ? "no more rows than a narrow tile has" : nullptr;
}

/// What both passes on cooperative matrices need of the device.
const char* refuses_matrix_device(const Choice& c, const Limits& limits, Path path) {
    if (!has_cooperative_matrices(limits, c.call->query.dtype())) return "the device has no such cooperative matrices";
    if (path == Path::cooperative && !limits.matrix_conversions)
        return "the device cannot make operands of sums in registers";
    if (!limits.subgroups_of_32) return "the device has no subgroups of 32";
    if (limits.max_workgroup_invocations < 256 || limits.shared_memory < kMatrixShared)
        return "256 invocations and 48 KiB of shared memory are needed";
    return nullptr;
}

template <Path path>
const char* refuses_cooperative(const Choice& c, const Limits& limits) {
    if (const char* why = refuses_matrices(c, limits, path)) return why;
    return refuses_matrix_device(c, limits, path);
}

const char* refuses_emulated(const Choice& c, const Limits& limits) {
    if (forced.load(std::memory_order_relaxed) != static_cast<int>(Path::emulated)) return "the emulation is for tests";
    if (limits.shared_memory < kEmulatedShared) return "the device has less than 24 KiB of shared memory";
    return refuses_matrices(c, limits, Path::emulated);
}

const char* refuses_wide(const Choice& c, const Limits& limits) {
    if (const char* why = refuses_vulkan(c, limits, Path::wide)) return why;
    if (c.p->is_f64) return "tiles of 64 rows are for 32 and 16 bits";
    if (c.p->E > kMostWide || c.p->Ev > kMostWide) return "more than 128 columns do not fit a tile of 64 rows";
    if (limits.shared_memory < kWideShared) return "the device has less than 20 KiB of shared memory";
    if (forced.load(std::memory_order_relaxed) == static_cast<int>(Path::wide)) return nullptr;
    return c.p->rows() <= 32 ? "no more rows than a narrow tile has" : nullptr;
}

const char* refuses_narrow(const Choice& c, const Limits& limits) { return refuses_vulkan(c, limits, Path::narrow); }

constexpr Variant<Choice> kTable[] = {{"tiled", refuses_tiled},
                                      {"split", refuses_split},
                                      {"cooperative", refuses_cooperative<Path::cooperative>},
                                      {"cooperative_shared", refuses_cooperative<Path::cooperative_shared>},
                                      {"emulated", refuses_emulated},
                                      {"wide", refuses_wide},
                                      {"narrow", refuses_narrow},
                                      {"composed", never<Choice>}};

const char* refuses_wide_backward(const Choice& c, const Limits& limits) {
    const int name = forced.load(std::memory_order_relaxed);
    if (name == static_cast<int>(Path::narrow)) return "another path is asked for by name";
    if (c.p->is_f64) return "tiles of 64 rows are for 32 and 16 bits";
    if (c.p->E > kMostWide || c.p->Ev > kMostWide) return "more than 128 columns do not fit a tile of 64 rows";
    if (limits.shared_memory < kWideShared) return "the device has less than 20 KiB of shared memory";
    if (name == static_cast<int>(Path::wide)) return nullptr;
    return c.p->rows() <= 32 && c.p->S <= 32 ? "no more rows than a narrow tile has" : nullptr;
}

/// What the gradients on cooperative matrices need of the call.
const char* refuses_matrix_backward(const Choice& c, Path path) {
    const int name = forced.load(std::memory_order_relaxed);
    if (name >= 0 && name != static_cast<int>(path)) return "another path is asked for by name";
    const DType dtype = c.call->query.dtype();
    if (dtype != DType::f16 && dtype != DType::bf16) return "the tensors are not of 16 bits";
    if (c.p->E > kMostWide || c.p->Ev > kMostWide) return "more than 128 columns do not fit the registers";
    if (!c.p->vectors) return "a row does not begin at 16 bytes";
    if (c.call->mask.defined()) return "attn_mask is read by the other kernels";
    if (c.call->dropout_p > 0) return "dropout is drawn by the other kernels";
    if (c.p->rows() > kMostExact || c.p->S > kMostExact) return "more than 2^24 rows or keys";
    if (name == static_cast<int>(path)) return nullptr;
    return c.p->rows() <= 32 && c.p->S <= 32 ? "no more rows than a narrow tile has" : nullptr;
}

template <Path path>
const char* refuses_cooperative_backward(const Choice& c, const Limits& limits) {
    if (const char* why = refuses_matrix_backward(c, path)) return why;
    return refuses_matrix_device(c, limits, path);
}

const char* refuses_emulated_backward(const Choice& c, const Limits& limits) {
    if (forced.load(std::memory_order_relaxed) != static_cast<int>(Path::emulated)) return "the emulation is for tests";
    if (limits.shared_memory < kEmulatedShared) return "the device has less than 24 KiB of shared memory";
    return refuses_matrix_backward(c, Path::emulated);
}

constexpr Variant<Choice> kBackwardTable[] = {
    {"cooperative", refuses_cooperative_backward<Path::cooperative>},
    {"cooperative_shared", refuses_cooperative_backward<Path::cooperative_shared>},
    {"emulated", refuses_emulated_backward},
    {"wide", refuses_wide_backward},
    {"narrow", never<Choice>}};
constexpr Path kBackwardPaths[] = {Path::cooperative, Path::cooperative_shared, Path::emulated, Path::wide,
                                   Path::narrow};

}  // namespace

Problem place(const Call& call) {
    Problem p;
    p.is_cpu = call.query.device().is_cpu();
    p.is_f64 = call.query.dtype() == DType::f64;
    p.L = call.L, p.S = call.S, p.E = call.E, p.Ev = call.Ev;
    const auto own_heads = [&](const Tensor& t) { return t.ndim() > 2 ? t.size(-3) : 1; };
    std::int64_t heads = call.query_heads;
    if (call.key_heads != call.query_heads || call.value_heads != call.query_heads) {
        heads = call.key_heads;
        if (call.key_heads != call.value_heads) p.cannot = "key and value have different numbers of heads";
    } else if (own_heads(call.key) == 1 && own_heads(call.value) == 1) {
        heads = 1;  // all query heads share them
    }
    if (call.empty() || p.cannot) return p;
    p.H = heads, p.G = call.query_heads / heads;
    for (int i = 0; i + 1 < call.lead.size(); i++) p.B *= call.lead[i];
    p.query = place_operand(call, call.query, call.query_heads, p.cannot);
    p.key = place_operand(call, call.key, heads, p.cannot);
    p.value = place_operand(call, call.value, heads, p.cannot);
    p.mask = place_mask(call, p);
    p.vectors = has_vectors(p, call.query.dtype());
    return p;
}

Spec spec_of(const Call& call, const Problem& p, std::uint64_t last) {
    const auto word = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
    const auto bits = std::bit_cast<std::uint64_t>(call.scale);
    // Of a float scale the kernels read the argument: a pipeline should not depend on it.
    const bool exact = p.is_cpu || p.is_f64;
    const double kept = 1 - call.dropout_p;
    return {word(p.E),
            word(p.Ev),
            p.query.row,
            p.key.row,
            p.value.row,
            p.mask.column,
            word(p.G),
            p.mask_kind,
            call.causal,
            static_cast<std::uint32_t>(std::ceil(call.dropout_p * 0x1p24)),
            std::bit_cast<std::uint32_t>(static_cast<float>(1 / kept)),
            p.vectors,
            exact ? static_cast<std::uint32_t>(bits) : 0,
            exact ? static_cast<std::uint32_t>(bits >> 32) : 0,
            static_cast<std::uint32_t>(last),
            p.is_cpu ? static_cast<std::uint32_t>(last >> 32) : 0};
}

Path choose_path(const Call& call, const Problem& p) {
    const Choice choice{&call, &p};
    return static_cast<Path>(choose("attention.path", kOp, kTable, choice, stream(call.query.device()).limits()));
}

Path choose_backward(const Call& call, const Problem& p) {
    const Choice choice{&call, &p};
    return kBackwardPaths[choose("attention_backward.path", kOp, kBackwardTable, choice,
                                 stream(call.query.device()).limits())];
}

void force_path(std::string_view name) {
    int path = -1;
    for (int i = 0; i < static_cast<int>(std::size(kTable)); i++)
        if (kTable[i].name == name) path = i;
    check(name.empty() || path >= 0, "force_path: expected a row of attention.path, got ", name);
    forced.store(path, std::memory_order_relaxed);
}

}  // namespace vkml::attention
