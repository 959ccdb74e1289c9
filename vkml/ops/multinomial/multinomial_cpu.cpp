#include <algorithm>

#include "vkml/core/random.h"
#include "vkml/ops/multinomial/multinomial_bits.h"
#include "vkml/ops/multinomial/multinomial_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/fault.h"

namespace vkml {
namespace {

constexpr std::int64_t kPickGrain = 1024, kKeyGrain = 256;

const MultinomialArgs& args_of(const void* raw) { return *static_cast<const MultinomialArgs*>(raw); }

void report(const MultinomialArgs& a, std::uint64_t row, std::int64_t wanted) {
    report_fault(a.fault, kIllegalWeights, a.site, static_cast<std::int64_t>(row), wanted);
}

std::uint64_t word_of(const MultinomialArgs& a, std::uint64_t i) {
    const PhiloxWords w = philox(Draw{a.seed, a.offset}, i);
    return (std::uint64_t{w[1]} << 32) | w[0];
}

std::uint32_t weight_of(const MultinomialArgs& a, std::uint64_t i) {
    const std::uint32_t bits = reinterpret_cast<const std::uint32_t*>(a.weights)[i];
    if (!isBadWeight(bits)) return bits;
    report(a, i / a.columns, a.samples);
    return 0;
}

/// output[i] = element(i), in parallel.
template <class Element>
void fill(const MultinomialArgs& a, std::int64_t grain, const Element& element) {
    auto* output = reinterpret_cast<std::int64_t*>(a.output);
    cpu::parallel_for(static_cast<std::int64_t>(a.count), grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) output[i] = element(static_cast<std::uint64_t>(i));
    });
}

}  // namespace

void multinomial_shares_cpu(const void* raw, DType, const Spec&, Grid) {
    const MultinomialArgs& a = args_of(raw);
    const auto* largest = reinterpret_cast<const std::uint32_t*>(a.largest);
    fill(a, cpu::kGrain, [&](std::uint64_t i) { return shareOf(weight_of(a, i), largest[i / a.columns], a.shift); });
}

void multinomial_pick_cpu(const void* raw, DType, const Spec&, Grid) {
    const MultinomialArgs& a = args_of(raw);
    fill(a, kPickGrain, [&](std::uint64_t i) {
        const std::uint64_t row = i / a.samples;
        const auto* sums = reinterpret_cast<const std::int64_t*>(a.sums) + row * a.columns;
        const std::int64_t total = sums[a.columns - 1];
        if (total == 0) report(a, row, 1);
        const auto target = static_cast<std::int64_t>(productHigh(word_of(a, i), static_cast<std::uint64_t>(total)));
        // The last sum is above every target, unless all are 0.
        return static_cast<std::int64_t>(std::upper_bound(sums, sums + a.columns - 1, target) - sums);
    });
}

void multinomial_keys_cpu(const void* raw, DType, const Spec&, Grid) {
    const MultinomialArgs& a = args_of(raw);
    fill(a, kKeyGrain, [&](std::uint64_t i) { return keyOf(exponentialOf(word_of(a, i)), weight_of(a, i)); });
}

void multinomial_check_cpu(const void* raw, DType, const Spec&, Grid) {
    const MultinomialArgs& a = args_of(raw);
    const auto* keys = reinterpret_cast<const std::int64_t*>(a.sums);
    for (std::uint64_t row = 0; row < a.count; row++)
        if (keys[(row + 1) * a.samples - 1] == kNeverDrawn) report(a, row, a.samples);
}

}  // namespace vkml
