#pragma once
#include "vkml/ops/kda/kda_args.h"
#include "vkml/ops/kda/kda_internal.h"
#include "vkml/runtime/registry.h"

/// The steps of a slab, as launches. A slab is `tiles` tiles from tile0 of `heads` value heads from head0.
namespace vkml::kda {

struct Slab {
    std::int64_t head0, heads, tile0, tiles;
};

/// A state as a kernel reads it: null for zeros.
struct StateView {
    Tensor tensor;  // keeps it alive; its block is what the launch reads
    Storage storage;
    Address address = 0;
    std::uint32_t s[4] = {0, 0, 0, 0};
};
StateView state_view(const Strided& state);

/// What a call launches with; made once per call.
class Launcher {
  public:
    Launcher(std::string_view op, const Problem& p, const Inputs& in, const Storage& workspace);

    void prepare(const Slab& slab, bool keep);
    void scan(const Slab& slab, bool keep, const StateView& from, const Storage& to, Address to_address,
              const Tensor& output, const Tensor& boundaries, std::int64_t spacing_tiles);
    void boundary(const Slab& slab, const Tensor& boundaries, std::int64_t spacing);
    void reverse(const Slab& slab, const Strided& grad_output, const StateView& from, const Tensor& to);
    void epilogue(const Slab& slab, const KdaGradients& out);

  private:
    /// Slices of `width` value columns; one on the CPU.
    std::uint32_t slices(std::uint32_t width) const;
    /// Segments side by side: see kda_scan.slang.
    void scan_segments(const Slab& slab, const StateView& from, const KdaScanArgs& args, const Storage& to,
                       const Tensor& output, const Tensor& boundaries);

    const Problem& p_;
    Stream& stream_;
    Storage workspace_;
    Strided query_, key_, value_, decay_, beta_;
    std::size_t path_ = 0;
    std::int64_t segment_ = 0;  // tiles of a segment; 0: one after the other
    Storage maps_, states_;
};

}  // namespace vkml::kda
