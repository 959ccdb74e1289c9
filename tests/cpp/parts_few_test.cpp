// The kernel of a few rows from three bf16 parts, with cooperative matrices emulated: layouts, edges, the order of sums
// and what leaves the range.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/cpp/emulated_parts_few.spv.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/matmul/gemm_args.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"
#include "vkml/runtime/stream.h"

using namespace vkml;

namespace {

constexpr Kernel across{"gemm_parts_few", spv::emulated_parts_few_nn},
    along{"gemm_parts_few", spv::emulated_parts_few_nt}, any{"gemm_parts_few", spv::emulated_parts_few_any};

using Values = std::vector<float>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

/// Where the elements of a product's operands lie in two arrays.
struct Layout {
    const Kernel* kernel;
    std::int64_t a_row, a_col, b_row, b_col;
};

struct Problem {
    std::int64_t m, k, n, batch = 1;
};

/// Lines are multiples of 4 apart, or with `any` at odd places.
Layout layout_of(const Problem& p, const Kernel& kernel) {
    const std::int64_t k = (p.k + 3) / 4 * 4 + 4, n = (p.n + 3) / 4 * 4 + 4;
    if (&kernel == &across) return {&kernel, k, 1, n, 1};
    if (&kernel == &along) return {&kernel, k, 1, 1, k};
    return {&kernel, 2 * p.k + 1, 2, 1, p.k + 3};
}

class PartsFew : public testing::Test {
  protected:
    void SetUp() override {
        if (!vulkan::records().front().usable) GTEST_SKIP() << vulkan::records().front().why;
        if (std::getenv("VKML_MIN_SPEC")) GTEST_SKIP() << "the tile needs more than the floor of the limits";
    }

    std::int64_t extent(std::int64_t lines, std::int64_t line, std::int64_t others, std::int64_t other) {
        return (lines - 1) * line + (others - 1) * other + 1;
    }

    /// All that is not an operand's is NaN.
    Tensor upload(const Values& dense, std::int64_t batch, std::int64_t rows, std::int64_t row, std::int64_t columns,
                  std::int64_t column, std::int64_t matrix) {
        Values values(static_cast<std::size_t>(batch * matrix), kNan);
        for (std::int64_t q = 0; q < batch; q++)
            for (std::int64_t r = 0; r < rows; r++)
                for (std::int64_t c = 0; c < columns; c++)
                    values[static_cast<std::size_t>(q * matrix + r * row + c * column)] =
                        dense[static_cast<std::size_t>((q * rows + r) * columns + c)];
        return from_host(values.data(), {batch * matrix}, DType::f32, parse_device("vulkan:0"));
    }

    Values product(const Problem& p, const Layout& l, const Values& a, const Values& b, const Values& bias = {},
                   std::uint32_t activation = 0) {
        const Device device = parse_device("vulkan:0");
        const std::int64_t a_matrix = (extent(p.m, l.a_row, p.k, l.a_col) + 3) / 4 * 4,
                           b_matrix = (extent(p.k, l.b_row, p.n, l.b_col) + 3) / 4 * 4;
        const Tensor left = upload(a, p.batch, p.m, l.a_row, p.k, l.a_col, a_matrix),
                     right = upload(b, p.batch, p.k, l.b_row, p.n, l.b_col, b_matrix),
                     c = full({p.batch, p.m, p.n}, kNan, DType::f32, device);
        const Tensor extra = bias.empty()
                                 ? Tensor{}
                                 : from_host(bias.data(), {static_cast<std::int64_t>(bias.size())}, DType::f32, device);
        const GemmArgs args{.a = left.address(),
                            .b = right.address(),
                            .c = c.address(),
                            .bias = bias.empty() ? 0 : extra.address(),
                            .a_row = l.a_row,
                            .a_col = l.a_col,
                            .b_row = l.b_row,
                            .b_col = l.b_col,
                            .a_outer = 0,
                            .a_inner = a_matrix,
                            .b_outer = 0,
                            .b_inner = b_matrix,
                            .m = static_cast<std::uint32_t>(p.m),
                            .n = static_cast<std::uint32_t>(p.n),
                            .k = static_cast<std::uint32_t>(p.k),
                            .batch = static_cast<std::uint32_t>(p.batch),
                            .batch_inner = static_cast<std::uint32_t>(p.batch),
                            .flags = 0,
                            .k_part = 0x80000000u,
                            .chain = 0x80000000u};
        const Grid grid{static_cast<std::uint32_t>(ceil_div(args.n, 16)),
                        static_cast<std::uint32_t>(ceil_div(args.m, 16)), args.batch};
        stream(device).launch(*l.kernel, DType::f32,
                              Spec{activation, p.m <= 4   ? 4u
                                               : p.m <= 8 ? 8u
                                                          : 16u},
                              grid, args, {left, right, extra}, {c});
        Values out(static_cast<std::size_t>(p.batch * p.m * p.n));
        to_host(c, out.data());
        return out;
    }
};

Values draw(std::int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Values values(static_cast<std::size_t>(count));
    for (float& v : values) v = normal(random);
    return values;
}

// Rows and columns beside whole tiles, rounds that not every crew has a part of, and ends of K inside a slice.
constexpr Problem kProblems[] = {{1, 64, 16}, {1, 1, 1}, {3, 150, 70}, {16, 129, 33}, {17, 40, 18, 3}, {4, 15, 20, 2}};

TEST_F(PartsFew, IsAsGoodAsSumsInF32) {
    for (const Problem& p : kProblems)
        for (const Kernel* kernel : {&across, &along, &any}) {
            SCOPED_TRACE(std::to_string(p.m) + " " + std::to_string(p.k) + " " + std::to_string(p.n));
            const Values a = draw(p.batch * p.m * p.k, 1), b = draw(p.batch * p.k * p.n, 2), bias = draw(p.n, 3);
            const bool relu = kernel == &any;  // of the others the pipelines serve all tests
            const Values out = product(p, layout_of(p, *kernel), a, b, bias, relu);
            double worst = 0;
            for (std::int64_t q = 0; q < p.batch; q++)
                for (std::int64_t i = 0; i < p.m; i++)
                    for (std::int64_t j = 0; j < p.n; j++) {
                        double sum = bias[static_cast<std::size_t>(j)], size = std::abs(sum);
                        for (std::int64_t k = 0; k < p.k; k++) {
                            const double term = double(a[static_cast<std::size_t>((q * p.m + i) * p.k + k)]) *
                                                b[static_cast<std::size_t>((q * p.k + k) * p.n + j)];
                            sum += term, size += std::abs(term);
                        }
                        const double got = out[static_cast<std::size_t>((q * p.m + i) * p.n + j)];
                        const double error = std::abs(got - (relu ? std::max(sum, 0.0) : sum)) / size;
                        worst = std::isnan(got) ? got : std::max(worst, error);
                        ASSERT_LT(worst, 5e-7);
                    }
        }
}

TEST_F(PartsFew, ARowHasItsBitsWhateverIsBesideItAndHoweverOperandsLie) {
    const Problem p{20, 150, 37}, one{1, 150, 37};
    const Values a = draw(p.m * p.k, 1), b = draw(p.k * p.n, 2);
    const Values whole = product(p, layout_of(p, across), a, b);
    for (const Kernel* kernel : {&across, &along, &any})
        for (const std::int64_t row : {0, 6, 17, 19}) {
            const Values line(a.begin() + row * p.k, a.begin() + (row + 1) * p.k);
            const Values alone = product(one, layout_of(one, *kernel), line, b);
            for (std::int64_t j = 0; j < p.n; j++)
                EXPECT_EQ(std::bit_cast<std::uint32_t>(alone[static_cast<std::size_t>(j)]),
                          std::bit_cast<std::uint32_t>(whole[static_cast<std::size_t>(row * p.n + j)]));
        }
}

TEST_F(PartsFew, WhatLeavesTheRangeIsAsIeeeHasIt) {
    const Problem p{18, 70, 20};
    Values a = draw(p.m * p.k, 1), b = draw(p.k * p.n, 2);
    const auto at = [&](std::int64_t row, std::int64_t k) -> float& {
        return a[static_cast<std::size_t>(row * p.k + k)];
    };
    at(2, 5) = kInfinity, at(3, 69) = kNan, at(4, 3) = kInfinity, at(4, 4) = -kInfinity;
    for (std::int64_t k = 0; k < p.k; k++) at(6, k) *= 1e33f, at(17, k) = std::abs(at(17, k)) * 3e37f;
    b[9 * 20 + 11] = -kInfinity, at(7, 9) = 0;
    for (std::int64_t k = 0; k < p.k; k++) {
        // One sign, or infinities of both would meet on the way.
        float& x = b[static_cast<std::size_t>(k * p.n + 15)];
        x = std::abs(x) * 1e3f;
    }
    for (const Kernel* kernel : {&across, &along, &any}) {
        const Values out = product(p, layout_of(p, *kernel), a, b);
        for (std::int64_t i = 0; i < p.m; i++)
            for (std::int64_t j = 0; j < p.n; j++) {
                SCOPED_TRACE(std::to_string(i) + " " + std::to_string(j));
                double sum = 0, size = 0;
                for (std::int64_t k = 0; k < p.k; k++) {
                    const double term = double(at(i, k)) * b[static_cast<std::size_t>(k * p.n + j)];
                    sum += term, size += std::abs(term);
                }
                const float value = out[static_cast<std::size_t>(i * p.n + j)];
                if (std::isnan(sum))
                    EXPECT_TRUE(std::isnan(value));
                else if (std::abs(sum) > std::numeric_limits<float>::max())
                    EXPECT_EQ(value, sum < 0 ? -kInfinity : kInfinity);
                else
                    EXPECT_LE(std::abs(value - sum), 5e-7 * size);
            }
    }
}

}  // namespace
