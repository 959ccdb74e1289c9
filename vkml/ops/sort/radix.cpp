#include "vkml/ops/sort/radix.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "vkml/ops/sort/radix.spv.h"
#include "vkml/ops/sort/radix_args.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kTile = 128 * 16;  // pairs per workgroup, as in radix.slang
constexpr int kDigitBits = 4;
constexpr int kHostDigitBits = 8;

/// All digits in one call: begin and end are those of the whole sort, and the result goes to sorted_keys and
/// sorted_values.
template <class Key>
void sort_on_host(const RadixArgs& args) {
    Key* keys = reinterpret_cast<Key*>(args.keys);
    Key* sorted_keys = reinterpret_cast<Key*>(args.sorted_keys);
    auto* values = reinterpret_cast<std::uint32_t*>(args.values);
    auto* sorted_values = reinterpret_cast<std::uint32_t*>(args.sorted_values);
    bool in_place = true;
    for (std::uint32_t begin = args.begin; begin < args.end; begin += kHostDigitBits) {
        const Key mask =
            static_cast<Key>((std::uint64_t{1} << std::min<std::uint32_t>(kHostDigitBits, args.end - begin)) - 1);
        std::array<std::uint32_t, (1 << kHostDigitBits)> place{};
        for (std::uint32_t i = 0; i < args.count; i++) place[(keys[i] >> begin) & mask]++;
        std::uint32_t sum = 0;
        for (std::uint32_t& p : place) sum += std::exchange(p, sum);
        for (std::uint32_t i = 0; i < args.count; i++) {
            const std::uint32_t to = place[(keys[i] >> begin) & mask]++;
            sorted_keys[to] = keys[i];
            sorted_values[to] = values[i];
        }
        std::swap(keys, sorted_keys);
        std::swap(values, sorted_values);
        in_place = !in_place;
    }
    if (!in_place) return;  // an odd number of digits ended in the right place
    std::copy_n(keys, args.count, sorted_keys);
    std::copy_n(values, args.count, sorted_values);
}

void radix_sort_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const RadixArgs*>(raw);
    if (itemsize(dtype) == 4)
        sort_on_host<std::uint32_t>(args);
    else
        sort_on_host<std::uint64_t>(args);
}

constexpr Kernel host_kernel{"radix_sort", {}, radix_sort_cpu};
constexpr Kernel count_kernel{"radix_count", spv::radix_count};
constexpr Kernel scan_kernel{"radix_scan", spv::radix_scan};
constexpr Kernel scatter_kernel{"radix_scatter", spv::radix_scatter};

}  // namespace

KeyedPairs sort_pairs(const KeyedPairs& pairs, int begin, int end) {
    const std::int64_t count = pairs.keys.numel();
    check(count < (std::int64_t{1} << 31), "sort: expected fewer than 2^31 elements, got ", count);
    if (count <= 1 || begin >= end) return pairs;
    Stream& on = stream_of(pairs.keys);
    KeyedPairs from = pairs, to{empty_like(pairs.keys), empty_like(pairs.values)};
    RadixArgs args{.keys = 0,
                   .sorted_keys = 0,
                   .values = 0,
                   .sorted_values = 0,
                   .counts = 0,
                   .count = static_cast<std::uint32_t>(count),
                   .tiles = static_cast<std::uint32_t>(ceil_div(static_cast<std::uint64_t>(count), kTile)),
                   .begin = static_cast<std::uint32_t>(begin),
                   .end = static_cast<std::uint32_t>(end)};
    const auto aim = [&] {
        args.keys = from.keys.address();
        args.values = from.values.address();
        args.sorted_keys = to.keys.address();
        args.sorted_values = to.values.address();
    };
    const DType type = pairs.keys.dtype();
    if (on.device().is_cpu()) {
        aim();
        on.launch(host_kernel, type, {}, {}, args, {}, {from.keys, from.values, to.keys, to.values});
        return to;
    }
    const Tensor counts = empty({std::int64_t{16} * args.tiles}, DType::i32, on.device());
    args.counts = counts.address();
    for (int bit = begin; bit < end; bit += kDigitBits) {
        aim();
        args.begin = static_cast<std::uint32_t>(bit);
        args.end = static_cast<std::uint32_t>(std::min(bit + kDigitBits, end));
        on.launch(count_kernel, type, {}, linear_grid(args.tiles), args, {from.keys}, {counts});
        on.launch(scan_kernel, type, {}, {}, args, {}, {counts});
        on.launch(scatter_kernel, type, {}, linear_grid(args.tiles), args, {from.keys, from.values, counts},
                  {to.keys, to.values});
        std::swap(from, to);
    }
    return from;
}

}  // namespace vkml
