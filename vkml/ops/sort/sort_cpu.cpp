#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "vkml/ops/sort/sort_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

template <class Key>
struct Entry {
    Key key;
    std::uint32_t place;
};

/// An unsigned number in the order of the values, as keyOf in sort.slang. `infinity` 0: integers.
template <class Raw>
Raw key_of(Raw bits, Raw sign, Raw infinity) {
    if (infinity == 0) return bits ^ sign;
    const Raw magnitude = bits & static_cast<Raw>(~sign);
    if (magnitude > infinity) return static_cast<Raw>(~Raw{0});
    if (magnitude == 0) return sign;
    return (bits & sign) ? static_cast<Raw>(~bits) : static_cast<Raw>(bits | sign);
}

/// Least significant byte first; bytes that all keys share are skipped.
template <class Key>
void radix_sort(std::vector<Entry<Key>>& entries, std::vector<Entry<Key>>& other) {
    other.resize(entries.size());
    for (unsigned shift = 0; shift < sizeof(Key) * 8; shift += 8) {
        std::array<std::uint32_t, 256> place{};
        for (const auto& e : entries) place[(e.key >> shift) & 0xff]++;
        if (place[(entries[0].key >> shift) & 0xff] == entries.size()) continue;
        std::uint32_t sum = 0;
        for (std::uint32_t& p : place) sum += std::exchange(p, sum);
        for (const auto& e : entries) other[place[(e.key >> shift) & 0xff]++] = e;
        entries.swap(other);
    }
}

template <class Raw>
void sort_all(const SortArgs& args, bool descending, Raw sign, Raw infinity) {
    constexpr std::int64_t kShort = 512;  // below it, comparing is quicker than counting
    const Raw* input = reinterpret_cast<const Raw*>(args.input);
    auto* indices = reinterpret_cast<std::int64_t*>(args.indices);
    const std::int64_t length = args.length, inners = args.inners;
    cpu::parallel_for(args.rows, std::max<std::int64_t>(1, 4096 / length), [&](std::int64_t begin, std::int64_t end) {
        std::vector<Entry<Raw>> entries(static_cast<std::size_t>(length)), other;
        for (std::int64_t row = begin; row < end; row++) {
            const std::int64_t outer = row / inners, inner = row % inners;
            const Raw* from = input + outer * args.outer_stride + inner * args.inner_stride;
            for (std::int64_t i = 0; i < length; i++) {
                const Raw key = key_of(from[i * args.row_stride], sign, infinity);
                entries[static_cast<std::size_t>(i)] = {descending ? static_cast<Raw>(~key) : key,
                                                        static_cast<std::uint32_t>(i)};
            }
            if (length >= kShort)
                radix_sort(entries, other);
            else
                std::ranges::sort(entries, [](const auto& a, const auto& b) {
                    return a.key != b.key ? a.key < b.key : a.place < b.place;
                });
            std::int64_t* to = indices + outer * length * inners + inner;
            for (std::int64_t i = 0; i < length; i++) to[i * inners] = entries[static_cast<std::size_t>(i)].place;
        }
    });
}

}  // namespace

void sort_rows_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const SortArgs*>(raw);
    const bool descending = spec[1] != 0;
    switch (dtype) {
        case DType::f64:
            return sort_all<std::uint64_t>(args, descending, std::uint64_t{1} << 63, 0x7ff0000000000000u);
        case DType::f32:
            return sort_all<std::uint32_t>(args, descending, 0x80000000u, 0x7f800000u);
        case DType::f16:
            return sort_all<std::uint16_t>(args, descending, 0x8000u, 0x7c00u);
        case DType::bf16:
            return sort_all<std::uint16_t>(args, descending, 0x8000u, 0x7f80u);
        case DType::i64:
            return sort_all<std::uint64_t>(args, descending, std::uint64_t{1} << 63, 0);
        case DType::i32:
            return sort_all<std::uint32_t>(args, descending, 0x80000000u, 0);
        case DType::i16:
            return sort_all<std::uint16_t>(args, descending, 0x8000u, 0);
        case DType::i8:
            return sort_all<std::uint8_t>(args, descending, 0x80u, 0);
        default:
            return sort_all<std::uint8_t>(args, descending, 0, 0);
    }
}

}  // namespace vkml
