// The kernels on cooperative matrices with those matrices emulated: their addresses, layouts, edges, scales and
// epilogues, on any device.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/cpp/emulated_coopmat.spv.h"
#include "tests/cpp/emulated_high.spv.h"
#include "tests/cpp/emulated_parts.spv.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/ops/matmul/gemm_choice.h"
#include "vkml/ops/matmul/gemm_tiles.h"
#include "vkml/ops/matmul/precision.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/registry.h"
#include "vkml/runtime/stream.h"

using namespace vkml;

namespace {

constexpr Kernel coopmat[] = {{"gemm_coopmat", spv::emulated_coopmat_nn},
                              {"gemm_coopmat", spv::emulated_coopmat_nt},
                              {"gemm_coopmat", spv::emulated_coopmat_tn}};
constexpr Kernel coopmat_large{"gemm_coopmat", spv::emulated_coopmat_large},
    coopmat_wide{"gemm_coopmat", spv::emulated_coopmat_wide}, high_small{"gemm_high", spv::emulated_high_small};
constexpr Kernel coopmat_small[] = {{}, {"gemm_coopmat", spv::emulated_coopmat_small}, {}};
constexpr Kernel coopmat_few[] = {{"gemm_coopmat", spv::emulated_coopmat_few_nn},
                                  {"gemm_coopmat", spv::emulated_coopmat_few_nt},
                                  {"gemm_coopmat", spv::emulated_coopmat_few_tn}};
constexpr Kernel parts_small[] = {{"gemm_parts", spv::emulated_parts_small_nn},
                                  {"gemm_parts", spv::emulated_parts_small_nt},
                                  {"gemm_parts", spv::emulated_parts_small_tn}};
// One layout of the other tiles is enough; 128x128 halves take more shared memory than an emulating device has.
constexpr CooperativeKernels kernels{coopmat, &coopmat_large, &coopmat_wide, coopmat_small, coopmat_few,
                                     nullptr, &high_small,    nullptr,       parts_small,   nullptr};

// The loop of the 128x128 tile, in the small one's place.
constexpr Kernel high_one{"gemm_high", spv::emulated_high_one};
constexpr CooperativeKernels kernels_one{coopmat, &coopmat_large, &coopmat_wide, coopmat_small, coopmat_few,
                                         nullptr, &high_one,      nullptr,       parts_small,   nullptr};

using Values = std::vector<float>;

Values draw(std::int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Values values(static_cast<std::size_t>(count));
    for (float& v : values) v = normal(random);
    return values;
}

/// Rounded to the type, as the kernel will see it.
Values rounded(const Values& values, const Shape& shape, DType dtype) {
    const Device cpu{};
    Values out(values.size());
    to_host(cast(cast(from_host(values.data(), shape, DType::f32, cpu), dtype), DType::f32), out.data());
    return out;
}

double activated(double x, Activation activation) {
    switch (activation) {
        case Activation::gelu:
            return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
        case Activation::gelu_tanh:
            return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
        case Activation::silu:
            return x / (1 + std::exp(-x));
        default:
            return std::max(x, 0.0);
    }
}

struct Problem {
    std::int64_t m, k, n;
    bool flip_a = false, flip_b = false;
};

class Cooperative : public testing::Test {
  protected:
    void SetUp() override {
        if (!vulkan::records().front().usable) GTEST_SKIP() << vulkan::records().front().why;
        if (std::getenv("VKML_MIN_SPEC")) GTEST_SKIP() << "the tiles need more than the floor of the limits";
        emulate_cooperative(&kernels);
    }
    void TearDown() override {
        emulate_cooperative(nullptr);
        force_gemm("");
        set_float32_matmul_precision("highest");
    }

    Tensor upload(const Values& values, std::int64_t rows, std::int64_t columns, DType dtype, bool flip) {
        const Device device = parse_device("vulkan:0");
        if (!flip) return cast(from_host(values.data(), {rows, columns}, DType::f32, device), dtype);
        const Tensor straight = from_host(values.data(), {rows, columns}, DType::f32, device);
        return transpose(cast(contiguous(transpose(straight, 0, 1)), dtype), 0, 1);
    }

    /// Largest error against float64, in units of sum |a||b|, with a bias that the product must add.
    double error_of(const Problem& p, const Values& a, const Values& b, DType dtype, const Values& bias,
                    Activation activation = Activation::relu) {
        const Device device = parse_device("vulkan:0");
        const Tensor extra = cast(from_host(bias.data(), {p.n}, DType::f32, device), dtype);
        record_decisions(8);
        const Tensor got =
            gemm("test", upload(a, p.m, p.k, dtype, p.flip_a), upload(b, p.k, p.n, dtype, p.flip_b), extra, activation);
        stop_recording_decisions();
        chosen = decisions().back().chose;
        Values out(static_cast<std::size_t>(p.m * p.n));
        to_host(cast(got, DType::f32), out.data());
        double worst = 0;
        for (std::int64_t i = 0; i < p.m; i++)
            for (std::int64_t j = 0; j < p.n; j++) {
                double sum = bias[static_cast<std::size_t>(j)], size = std::abs(sum);
                for (std::int64_t k = 0; k < p.k; k++) {
                    const double term =
                        double(a[static_cast<std::size_t>(i * p.k + k)]) * b[static_cast<std::size_t>(k * p.n + j)];
                    sum += term, size += std::abs(term);
                }
                const double error = std::abs(out[static_cast<std::size_t>(i * p.n + j)] - activated(sum, activation));
                if (!(error <= worst * size)) worst = error / size;
            }
        return worst;
    }

    std::string chosen;
};

// Whole tiles, tiles that move back, edges that are padded, and every layout.
constexpr Problem kProblems[] = {{128, 64, 128},
                                 {200, 128, 136},
                                 {131, 70, 67},
                                 {193, 64, 136, false, true},
                                 {200, 96, 128, true, false},
                                 {136, 64, 130, true, true},
                                 {20, 33, 300}};

// Fewer rows or columns than a tile, and ragged edges, which the tile of 64x64 reads where they lie.
constexpr Problem kFewLines[] = {{16, 1024, 136},
                                 {5, 1152, 40},
                                 {16, 1024, 37, false, true},
                                 {67, 1024, 70, false, true},
                                 {24, 1024, 40, true, false},
                                 {72, 1024, 100, true, false}};

TEST_F(Cooperative, SixteenBitProducts) {
    struct Run {
        const char* name;
        DType dtype;
        std::vector<Problem> problems;
    };
    const Run runs[] = {{"gemm_coopmat", DType::f16, {std::begin(kProblems), std::end(kProblems)}},
                        {"gemm_coopmat", DType::bf16, {{131, 70, 67}}},
                        {"gemm_coopmat_large", DType::f16, {{192, 64, 128}, {200, 128, 136}}},
                        {"gemm_coopmat_wide", DType::f16, {{128, 48, 256}, {136, 40, 264}, {128, 8, 256}}},
                        {"gemm_coopmat_small", DType::f16, {{131, 70, 67}, {128, 128, 64, false, true}}},
                        {"gemm_split_k_coopmat_small", DType::f16, {std::begin(kFewLines), std::end(kFewLines)}}};
    for (const Run& run : runs)
        for (const Problem& p : run.problems) {
            SCOPED_TRACE(std::string(run.name) + " " + std::to_string(p.m) + " " + std::to_string(p.k));
            force_gemm(run.name);
            const Values a = rounded(draw(p.m * p.k, 1), {p.m, p.k}, run.dtype);
            const Values b = rounded(draw(p.k * p.n, 2), {p.k, p.n}, run.dtype);
            const Values bias = rounded(draw(p.n, 3), {p.n}, run.dtype);
            EXPECT_LT(error_of(p, a, b, run.dtype, bias), run.dtype == DType::f16 ? 0x1p-11 : 0x1p-8);
            EXPECT_EQ(chosen, run.name);
        }
}

// Sums of a few terms, so that all of the curve and both tails are met.
TEST_F(Cooperative, ActivationsOfHalvesAreAsGoodAsHalves) {
    force_gemm("gemm_coopmat");
    for (const Problem& p : {Problem{131, 3, 67}, Problem{128, 32, 128}})
        for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::silu})
            for (const DType dtype : {DType::f16, DType::bf16}) {
                if (dtype == DType::bf16 && p.k != 3) continue;  // emulated in one layout
                SCOPED_TRACE(static_cast<int>(activation));
                const Values a = rounded(draw(p.m * p.k, 1), {p.m, p.k}, dtype),
                             b = rounded(draw(p.k * p.n, 2), {p.k, p.n}, dtype),
                             bias = rounded(draw(p.n, 3), {p.n}, dtype);
                EXPECT_LT(error_of(p, a, b, dtype, bias, activation), dtype == DType::f16 ? 0x1p-11 : 0x1p-8);
                EXPECT_EQ(chosen, "gemm_coopmat");
            }
}

TEST_F(Cooperative, SplitKAddsTheParts) {
    const Problem p{70, 2100, 65};
    const Values a = rounded(draw(p.m * p.k, 1), {p.m, p.k}, DType::f16),
                 b = rounded(draw(p.k * p.n, 2), {p.k, p.n}, DType::f16);
    for (const char* name : {"gemm_split_k_coopmat", "gemm_split_k_coopmat_small"}) {
        force_gemm(name);
        EXPECT_LT(error_of(p, a, b, DType::f16, rounded(draw(p.n, 3), {p.n}, DType::f16)), 0x1p-11);
        EXPECT_EQ(chosen, name);
    }
}

TEST_F(Cooperative, MediumRoundsOperandsToBfloat16) {
    set_float32_matmul_precision("medium");
    force_gemm("gemm_coopmat");
    for (const Problem& p : {kProblems[1], kProblems[2], kProblems[5]}) {
        const Values a = rounded(draw(p.m * p.k, 1), {p.m, p.k}, DType::bf16),
                     b = rounded(draw(p.k * p.n, 2), {p.k, p.n}, DType::bf16);
        // A little more than bf16 holds: what is rounded away must not be seen.
        Values more = a;
        for (float& v : more) v *= 1 + 0x1p-11f;
        EXPECT_LT(error_of(p, a, b, DType::f32, draw(p.n, 3)), 1e-6);
        EXPECT_EQ(chosen, "gemm_coopmat");
        EXPECT_GT(error_of(p, more, b, DType::f32, draw(p.n, 3)), 1e-5);
    }
}

TEST(Gemm, LastRowsGoToSmallerTilesWhereUnitsWouldWait) {
    EXPECT_EQ(wide_rows(8192, 8192, 132).rows, 7808u);  // 15.5 waves of 128x256
    EXPECT_EQ(wide_rows(4096, 4096, 132).rows, 4096u);  // 3.9 waves
    EXPECT_EQ(wide_rows(320, 256, 2).rows, 128u);
    EXPECT_EQ(wide_rows(100, 256, 2).rows, 100u);
    EXPECT_EQ(wide_rows(8192, 8192, 0).rows, 8192u);
}

TEST_F(Cooperative, WideTilesLeaveRowsToLargeOnes) {
    CooperativeKernels two = kernels;
    two.units = 2;
    emulate_cooperative(&two);
    force_gemm("gemm_coopmat_wide");
    const Problem p{320, 64, 256};
    const Values a = rounded(draw(p.m * p.k, 1), {p.m, p.k}, DType::f16),
                 b = rounded(draw(p.k * p.n, 2), {p.k, p.n}, DType::f16);
    const std::uint64_t before = stream(parse_device("vulkan:0")).dispatch_count();
    EXPECT_LT(error_of(p, a, b, DType::f16, rounded(draw(p.n, 3), {p.n}, DType::f16)), 0x1p-10);
    EXPECT_EQ(chosen, "gemm_coopmat_wide");
    const std::uint64_t both = stream(parse_device("vulkan:0")).dispatch_count() - before;
    emulate_cooperative(&kernels);
    error_of(p, a, b, DType::f16, rounded(draw(p.n, 3), {p.n}, DType::f16));
    EXPECT_EQ(both, stream(parse_device("vulkan:0")).dispatch_count() - before - both + 1);
}

TEST_F(Cooperative, HighIsAsGoodAsPlain) {
    set_float32_matmul_precision("high");
    force_gemm("gemm_high_small");
    std::vector<Problem> problems(std::begin(kProblems), std::end(kProblems));
    // Most of what one launch splits; then columns split in one reading by more invocations, and those too long for it.
    problems.push_back({20, 1024, 68, true, true});
    for (const std::int64_t k : {1000, 1100, 2050, 4128, 8200}) problems.push_back({20, k, 68});
    for (const Problem& p : problems) {
        SCOPED_TRACE(std::to_string(p.m) + " " + std::to_string(p.k));
        Values a = draw(p.m * p.k, 1), b = draw(p.k * p.n, 2);
        EXPECT_LT(error_of(p, a, b, DType::f32, draw(p.n, 3)), 4e-7);
        EXPECT_EQ(chosen, "gemm_high_small");
        // Rows and columns of every size: each has its own scale. The products reach both ends of the range.
        for (std::int64_t i = 0; i < p.m; i++)
            for (std::int64_t k = 0; k < p.k; k++)
                a[static_cast<std::size_t>(i * p.k + k)] *= std::ldexp(1.0f, static_cast<int>(i % 7) * 30 - 90);
        for (std::int64_t k = 0; k < p.k; k++)
            for (std::int64_t j = 0; j < p.n; j++)
                b[static_cast<std::size_t>(k * p.n + j)] *= std::ldexp(1.0f, static_cast<int>(j % 5) * 5 - 10);
        EXPECT_LT(error_of(p, a, b, DType::f32, Values(static_cast<std::size_t>(p.n), 0.0f)), 4e-7);
    }
}

TEST_F(Cooperative, TheLoopOfTheLargeHighTileIsAsGoodAsPlain) {
    emulate_cooperative(&kernels_one);
    set_float32_matmul_precision("high");
    force_gemm("gemm_high_small");
    for (const Problem& p : {kProblems[1], kProblems[2], kProblems[5], kProblems[6]}) {
        SCOPED_TRACE(std::to_string(p.m) + " " + std::to_string(p.k));
        const Values a = draw(p.m * p.k, 1), b = draw(p.k * p.n, 2);
        EXPECT_LT(error_of(p, a, b, DType::f32, draw(p.n, 3)), 4e-7);
    }
}

TEST_F(Cooperative, InfinitiesStayInTheirLines) {
    for (const char* name : {"gemm_high_small", "gemm_parts_small"}) {
        set_float32_matmul_precision(std::string(name).starts_with("gemm_high") ? "high" : "highest");
        force_gemm(name);
        Values a = draw(70 * 40, 1), b = draw(40 * 66, 2);
        a[3 * 40 + 5] = INFINITY, a[7 * 40] = NAN, b[9 * 66 + 11] = -INFINITY, b[30 * 66 + 20] = INFINITY;
        a[12 * 40 + 30] = 0;  // beside an infinity: NaN
        const Tensor got = gemm("test", upload(a, 70, 40, DType::f32, false), upload(b, 40, 66, DType::f32, false));
        Values out(70 * 66);
        to_host(got, out.data());
        for (std::int64_t i = 0; i < 70; i++)
            for (std::int64_t j = 0; j < 66; j++) {
                const float value = out[static_cast<std::size_t>(i * 66 + j)];
                double expected = 0;
                for (std::int64_t k = 0; k < 40; k++)
                    expected +=
                        double(a[static_cast<std::size_t>(i * 40 + k)]) * b[static_cast<std::size_t>(k * 66 + j)];
                SCOPED_TRACE(name);
                if (std::isnan(expected))
                    EXPECT_TRUE(std::isnan(value));
                else if (std::isinf(expected))
                    EXPECT_EQ(value, static_cast<float>(expected));
                else
                    EXPECT_NEAR(value, expected, 1e-4);
            }
    }
}

TEST_F(Cooperative, PartsAreAsGoodAsPlain) {
    force_gemm("gemm_parts_small");
    for (const Problem& p : kProblems) {
        SCOPED_TRACE(std::to_string(p.m) + " " + std::to_string(p.k));
        const Values a = draw(p.m * p.k, 1), b = draw(p.k * p.n, 2);
        // What is left out of the nine products is less than 2^-21 of |a||b|.
        EXPECT_LT(error_of(p, a, b, DType::f32, draw(p.n, 3)), 0x1p-21);
        EXPECT_EQ(chosen, "gemm_parts_small");
    }
}

// Rows and columns at every end of the range: sums that leave it on the way, parts that would be below it.
TEST_F(Cooperative, PartsKeepTheRange) {
    const Problem p{72, 48, 136};
    Values a = draw(p.m * p.k, 1), b = draw(p.k * p.n, 2);
    for (std::int64_t i = 0; i < p.m; i++)
        for (std::int64_t k = 0; k < p.k; k++)
            a[static_cast<std::size_t>(i * p.k + k)] *= std::ldexp(1.0f, static_cast<int>(i % 9) * 24 - 110);
    for (std::int64_t k = 0; k < p.k; k++)
        for (std::int64_t j = 0; j < p.n; j++)
            b[static_cast<std::size_t>(k * p.n + j)] *= std::ldexp(1.0f, static_cast<int>(j % 5) * 8 + 8);
    force_gemm("gemm_parts_small");
    EXPECT_LT(error_of(p, a, b, DType::f32, Values(static_cast<std::size_t>(p.n), 0.0f)), 0x1p-21);
    EXPECT_EQ(chosen, "gemm_parts_small");
}

// In rows that hold both ends of the range.
TEST_F(Cooperative, PartsTimesTheIdentityAreThemselves) {
    constexpr std::int64_t kSize = 128;
    Values a = draw(kSize * kSize, 1), identity(kSize * kSize), out(kSize * kSize);
    for (std::int64_t i = 0; i < kSize * kSize; i++) {
        float& x = a[static_cast<std::size_t>(i)];
        // A few rows with the largest numbers, which are added again.
        x = std::ldexp(std::copysign(1 + std::abs(x) / 8, x),
                       i / kSize < 3 ? static_cast<int>(i % 226) - 100 : static_cast<int>(i % 227) - 126);
        identity[static_cast<std::size_t>(i)] = i / kSize == i % kSize ? 1.0f : 0.0f;
    }
    force_gemm("gemm_parts_small");
    to_host(gemm("test", upload(a, kSize, kSize, DType::f32, false), upload(identity, kSize, kSize, DType::f32, false)),
            out.data());
    EXPECT_EQ(out, a);
}

}  // namespace
