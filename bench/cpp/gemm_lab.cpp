// Times variants of vkml/ops/matmul/gemm_large.slang beside each other, checked against float64, in one process:
//     bench_gemm_lab <list> [seconds per size] [device]
// Each line of the list names a variant: its label, the SPIR-V file (built as cmake/compile_kernel.py builds it, with
// other defines), the tile's rows and columns, the terms of a chain (0: one chain), and sizes m,n,k separated by
// semicolons; a seventh word is the parts that K is cut into, of one chain each, which a second kernel adds:
//     two_slices medium.spv 64 128 256 1024,1024,1024;2048,2048,2048
//     three_parts medium.spv 64 128 352 1024,1024,1024 3
// With VKML_VULKAN_DEBUG=1 the driver's registers and spills go to stderr; bench/machine_code.py reads what it made of
// the main loop.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "vkml/ops/matmul/gemm_args.h"
#include "vkml/ops/matmul/split_k.spv.h"
#include "vkml/ops/matmul/split_k_args.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"
#include "vkml/vkml.h"

namespace {

using namespace vkml;

struct Size {
    std::uint32_t m, n, k;
};

/// What a line of the list says; the kernel points into it, so it stays where it is.
struct Candidate {
    std::string label, sizes;
    std::uint32_t rows = 0, columns = 0, chain = 0, parts = 1;
    std::vector<std::uint32_t> code;
    Spirv module{};
    Kernel kernel{};
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A block of odd length, repeated from `shift` on: matrices of any size whose elements are known without keeping them.
const std::vector<float> kBlock = [] {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> block((1 << 20) + 7);
    std::ranges::generate(block, [&] { return normal(random); });
    return block;
}();
constexpr std::size_t kShiftA = 3, kShiftB = 77777;
float element(std::size_t index, std::size_t shift) { return kBlock[(index + shift) % kBlock.size()]; }

Tensor matrix(std::int64_t rows, std::int64_t columns, std::size_t shift, Device device) {
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < values.size(); i++) values[i] = element(i, shift);
    Tensor t = empty({rows, columns}, DType::f32, device);
    stream(device).upload(t.storage(), 0, values.data(), values.size() * sizeof(float));
    return t;
}

/// The operands of a size, kept for the variants that follow.
const std::pair<Tensor, Tensor>& operands(const Size& s, Device device) {
    static std::map<std::array<std::uint32_t, 3>, std::pair<Tensor, Tensor>> kept;
    auto& found = kept[{s.m, s.n, s.k}];
    if (!found.first) found = {matrix(s.m, s.k, kShiftA, device), matrix(s.k, s.n, kShiftB, device)};
    return found;
}

bool read_candidate(const std::string& line, Candidate& v) {
    std::istringstream words(line);
    std::string file;
    if (!(words >> v.label >> file >> v.rows >> v.columns >> v.chain >> v.sizes)) return false;
    if (!(words >> v.parts)) v.parts = 1;
    std::ifstream in(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    v.code.resize(bytes.size() / 4);
    std::memcpy(v.code.data(), bytes.data(), v.code.size() * 4);
    v.module = {DType::f32, v.code, std::hash<std::string>{}(bytes)};
    v.kernel = {"gemm_large", {&v.module, 1}};
    return !v.code.empty();
}

constexpr Kernel reduce_kernel{"gemm_split_k_reduce", spv::gemm_split_k_reduce};

/// `parts` holds the parts' sums; c itself where there is one part.
void launch(const Candidate& v, const Size& s, const Tensor& a, const Tensor& b, const Tensor& parts, const Tensor& c) {
    GemmArgs args{};
    args.a = a.address(), args.b = b.address(), args.c = parts.address();
    args.a_row = s.k, args.a_col = 1, args.b_row = s.n, args.b_col = 1;
    args.m = s.m, args.n = s.n, args.k = s.k;
    args.batch = args.batch_inner = 1;
    args.k_part = v.parts > 1 ? v.chain : 0x80000000u, args.chain = v.chain ? v.chain : 0x40000000u;
    const Grid grid{(s.n + v.columns - 1) / v.columns, (s.m + v.rows - 1) / v.rows, v.parts};
    stream(c.device()).launch(v.kernel, DType::f32, Spec{0}, grid, args, {a, b, parts}, {parts});
    if (v.parts == 1) return;
    SplitKArgs reduce{};
    reduce.partial = parts.address(), reduce.c = c.address(), reduce.count = std::uint64_t{s.m} * s.n;
    reduce.n = s.n, reduce.parts = v.parts, reduce.first = reduce.last = 1;
    stream(c.device())
        .launch(reduce_kernel, DType::f32, Spec{0, 0, 1}, linear_grid(ceil_div(reduce.count, 512)), reduce, {parts},
                {c});
}

/// The largest error of 200 outputs, in units of what the accuracy bound of matmul allows; infinite if one is missing.
double worst_error(const Size& s, const Tensor& c) {
    std::vector<float> got(std::size_t{s.m} * s.n);
    stream(c.device()).download(got.data(), c.storage(), 0, got.size() * sizeof(float));
    if (std::ranges::any_of(got, [](float x) { return std::isnan(x); })) return std::numeric_limits<double>::infinity();
    const double depth = s.k, allowed = (depth / 32 + std::log2(depth) + 32) * std::ldexp(1.0, -23);
    std::mt19937 random(5);
    double worst = 0;
    for (std::uint32_t sample = 0; sample < 200; sample++) {
        const std::size_t i = sample < 4 ? s.m - 1 - sample : random() % s.m,
                          j = sample < 8 ? s.n - 1 - sample : random() % s.n;
        double sum = 0, magnitude = 0;
        for (std::size_t k = 0; k < s.k; k++) {
            const double product = double{element(i * s.k + k, kShiftA)} * element(k * s.n + j, kShiftB);
            sum += product, magnitude += std::abs(product);
        }
        worst = std::max(worst, std::abs(got[i * s.n + j] - sum) / (magnitude * allowed));
    }
    return worst;
}

/// One size of one variant: the median of samples of about 20 ms, in the second half of the time given.
void measure(const Candidate& v, const Size& s, double seconds, Device device) {
    const auto& [a, b] = operands(s, device);
    const Tensor c = full({s.m, s.n}, std::numeric_limits<double>::quiet_NaN(), DType::f32, device);
    const Tensor parts = v.parts > 1 ? empty({v.parts, s.m, s.n}, DType::f32, device) : c;
    launch(v, s, a, b, parts, c);
    const double error = worst_error(s, c), flops = 2.0 * s.m * s.n * s.k;
    const int count = static_cast<int>(std::clamp(0.02 * 4e13 / flops, 1.0, 500.0));
    std::vector<double> samples;
    for (const double begin = now(); samples.size() < 4 || now() - begin < seconds;) {
        stream(device).synchronize();
        const double start = now();
        for (int i = 0; i < count; i++) launch(v, s, a, b, parts, c);
        stream(device).synchronize();
        samples.push_back((now() - start) / count);
    }
    const auto warm = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    const auto middle = warm + (samples.end() - warm) / 2;
    std::nth_element(warm, middle, samples.end());
    fmt::print("{:24} {:5} x {:5} x {:5} {:9.1f} us {:6.2f} TFLOP/s  error {:.4f}{}\n", v.label, s.m, s.n, s.k,
               *middle * 1e6, flops / *middle * 1e-12, error, error > 1 ? " WRONG" : "");
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "usage: bench_gemm_lab <list> [seconds per size] [device]\n");
        return 2;
    }
    const double seconds = argc > 2 ? std::atof(argv[2]) : 0.3;
    const Device device = parse_device(argc > 3 ? argv[3] : "vulkan:0");
    std::ifstream list(argv[1]);
    std::vector<std::unique_ptr<Candidate>> variants;  // kernels are known by their address as long as the stream lives
    for (std::string line; std::getline(list, line);) {
        variants.push_back(std::make_unique<Candidate>());
        Candidate& v = *variants.back();
        if (line.empty() || line[0] == '#') continue;
        if (!read_candidate(line, v)) {
            fmt::print("cannot read: {}\n", line);
            continue;
        }
        std::istringstream sizes(v.sizes);
        for (std::string size; std::getline(sizes, size, ';');) {
            Size s{};
            if (std::sscanf(size.c_str(), "%u,%u,%u", &s.m, &s.n, &s.k) == 3) measure(v, s, seconds, device);
        }
    }
}
