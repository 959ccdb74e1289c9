// Times variants of the fast KDA forward's kernels at B1 T8192 H32 beside each other, in one process:
//     bench_kda_lab <list> [seconds per line] [device]
// Lines of the list (SPIR-V files built as cmake/compile_kernel.py builds them, with other defines):
//     prepare <label> <file> [tiles a workgroup] [stop]   the preparation of all tiles alone, to `stop` where the
//     variant knows it scan <label> <file> <columns>                                 the scan of all tiles alone chain
//     <label> <prepare file> <scan file> <columns> <slabs> [tiles a workgroup] [scan file of 32 columns for the last
//     slab]
//         the whole forward, with its errors against strict
//     prototype <label> <file> <entry>                              a preparation or a scan with the prototype's
//     arguments resident <label> <file> <workgroups>                          a kernel that spins: how many workgroups
//     an SM holds
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "vkml/ops/kda/kda_args.h"
#include "vkml/runtime/registry.h"
#include "vkml/vkml.h"

namespace {

using namespace vkml;

constexpr std::uint32_t kHeads = 32, kTokens = 8192, kTiles = kTokens / 64, kSlot = 33024;  // kSlot in elements

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Module {
    std::string name;
    std::vector<std::uint32_t> code;
    Spirv spirv{};
    Kernel kernel{};
};
std::vector<std::unique_ptr<Module>> modules;  // kernels are known by their address as long as the stream lives

const Kernel& kernel_of(const std::string& file, const char* entry) {
    for (const auto& m : modules)
        if (m->name == file) return m->kernel;
    modules.push_back(std::make_unique<Module>());
    Module& m = *modules.back();
    m.name = file;
    std::ifstream in(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    if (bytes.empty()) throw std::runtime_error("cannot read " + file);
    m.code.resize(bytes.size() / 4);
    std::memcpy(m.code.data(), bytes.data(), m.code.size() * 4);
    m.spirv = {DType::none, m.code, std::hash<std::string>{}(bytes)};
    m.kernel = {entry, {&m.spirv, 1}};
    return m.kernel;
}

std::uint16_t bf16(float x) {
    std::uint32_t u;
    std::memcpy(&u, &x, 4);
    return static_cast<std::uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

template <class T>
Tensor upload(const std::vector<T>& x, std::vector<std::int64_t> shape, DType dtype, Device device) {
    Tensor t = empty(Shape(std::span<const std::int64_t>(shape)), dtype, device);
    stream(device).upload(t.storage(), 0, x.data(), x.size() * sizeof(T));
    return t;
}

struct Data {
    Tensor query, key, value, decay, beta, state;       // [1, H, T, 128] ..., state [1, H, 128, 128]
    Tensor output, strict_output, strict_state, after;  // after: the state that a scan leaves
    Storage workspace[2];
};

Data make(Device device) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform;
    const std::size_t n = std::size_t{kHeads} * kTokens * 128;
    std::vector<float> block((1 << 20) + 7);
    std::ranges::generate(block, [&] { return normal(random); });
    std::vector<std::uint16_t> q(n), k(n), v(n);
    std::vector<float> g(n), beta(n / 128), s(std::size_t{kHeads} * 16384);
    for (std::size_t row = 0; row < n / 128; row++) {
        double norm = 0;
        for (std::size_t c = 0; c < 128; c++) norm += std::pow(block[(row * 128 + c) % block.size()], 2);
        const auto by = static_cast<float>(1 / std::sqrt(norm));
        for (std::size_t c = 0; c < 128; c++) {
            const std::size_t i = row * 128 + c;
            k[i] = bf16(block[i % block.size()] * by);
            q[i] = bf16(block[(i + 33333) % block.size()] * 0.088F);
            v[i] = bf16(block[(i + 77777) % block.size()]);
            g[i] = -1e-3F * std::exp(7.377F * 0.5F * (1 + std::erf(block[(i + 5555) % block.size()] * 0.7071F)));
        }
        beta[row] = uniform(random);
    }
    for (std::size_t i = 0; i < s.size(); i++) s[i] = block[i % block.size()];
    Data d;
    d.query = upload(q, {1, kHeads, kTokens, 128}, DType::bf16, device);
    d.key = upload(k, {1, kHeads, kTokens, 128}, DType::bf16, device);
    d.value = upload(v, {1, kHeads, kTokens, 128}, DType::bf16, device);
    d.decay = upload(g, {1, kHeads, kTokens, 128}, DType::f32, device);
    d.beta = upload(beta, {1, kHeads, kTokens}, DType::f32, device);
    d.state = upload(s, {1, kHeads, 128, 128}, DType::f32, device);
    d.output = empty(d.value.shape(), DType::bf16, device);
    d.after = empty(d.state.shape(), DType::f32, device);
    for (Storage& w : d.workspace) w = stream(device).allocate(std::size_t{kHeads} * kTiles * 131072);
    const NoGrad off;
    const KdaOutput strict = chunk_kda(d.query, d.key, d.value, d.decay, d.beta, d.state);
    d.strict_output = strict.output, d.strict_state = strict.final_state;
    return d;
}

struct Slab {
    std::uint32_t tile0, tiles;
};

void prepare(const Data& d, const Kernel& kernel, Slab slab, const Storage& workspace, std::uint32_t a_group,
             std::uint32_t stop = 0) {
    const Address first = std::size_t{slab.tile0} * 64;
    KdaPrepareArgs a{};
    a.query = d.query.address() + first * 256, a.key = d.key.address() + first * 256;
    a.value = d.value.address() + first * 256, a.log_decay = d.decay.address() + first * 512;
    a.beta = d.beta.address() + first * 4, a.workspace = workspace->address;
    a.q_h = a.k_h = a.v_h = a.g_h = kTokens * 128, a.q_t = a.k_t = a.v_t = a.g_t = 128;
    a.b_h = kTokens, a.b_t = 1, a.scale = 0.088F;
    a.q_b = a.k_b = a.v_b = a.g_b = kHeads * kTokens * 128, a.b_b = kHeads * kTokens;
    a.left = kTokens - slab.tile0 * 64, a.widths = (slab.tiles - 1) << 16 | stop, a.heads_packed = kHeads - 1;
    stream(d.query.device())
        .launch(kernel, DType::bf16, {}, {kHeads * slab.tiles / a_group}, a, {d.query, d.key, d.decay, d.beta},
                {workspace});
}

void scan(const Data& d, const Kernel& kernel, Slab slab, const Storage& workspace, std::uint32_t columns) {
    KdaFastScanArgs a{};
    a.workspace = workspace->address, a.value = d.value.address(), a.state = d.after.address();
    a.output = d.output.address();
    a.v_b = kHeads * kTokens * 128, a.v_h = kTokens * 128, a.v_t = 128;
    a.tokens = kTokens, a.tile0 = slab.tile0, a.widths = (slab.tiles - 1) << 16, a.heads_packed = kHeads - 1;
    a.heads = kHeads, a.spacing = kTiles;
    stream(d.query.device())
        .launch(kernel, DType::bf16, {}, {kHeads * 128 / columns}, a, {workspace, d.value}, {d.after, d.output});
}

struct PrototypeArgs {
    Address query, key, value, log_decay, beta, w, u0, qg, kt, a, fade, state, output;
    std::uint32_t tokens, tile0, tiles;
    float scale;
};

void prototype(const Data& d, const Kernel& kernel, bool scans) {
    PrototypeArgs a{};
    a.query = d.query.address(), a.key = d.key.address(), a.value = d.value.address();
    a.log_decay = d.decay.address(), a.beta = d.beta.address();
    const std::size_t plane = std::size_t{kHeads} * kTiles * 16384;
    Address at = d.workspace[0]->address;
    for (Address* p : {&a.w, &a.u0, &a.qg, &a.kt, &a.a}) *p = at, at += plane;
    a.fade = at, a.state = d.after.address(), a.output = d.output.address();
    a.tokens = kTokens, a.tiles = kTiles, a.scale = 0.088F;
    if (scans)
        stream(d.query.device())
            .launch(kernel, DType::bf16, {}, {kHeads * 2}, a, {d.workspace[0]}, {d.after, d.output});
    else
        stream(d.query.device())
            .launch(kernel, DType::bf16, {}, {kHeads * kTiles}, a, {d.query, d.key, d.value, d.decay, d.beta},
                    {d.workspace[0]});
}

/// Median and least milliseconds of a call, after a warm-up.
std::pair<double, double> time_of(Device device, double seconds, const auto& call) {
    std::vector<double> samples;
    const double begin = now();
    constexpr int kCount = 12;
    while (now() - begin < 0.4 * seconds) {
        for (int i = 0; i < kCount; i++) call();
        stream(device).synchronize();
    }
    for (const double from = now(); samples.size() < 5 || now() - from < 0.6 * seconds;) {
        const double start = now();
        for (int i = 0; i < kCount; i++) call();
        stream(device).synchronize();
        samples.push_back((now() - start) / kCount * 1e3);
    }
    std::ranges::sort(samples);
    return {samples[samples.size() / 2], samples.front()};
}

double difference(const Tensor& a, const Tensor& b) {
    const Tensor x = cast(a, DType::f32), y = cast(b, DType::f32);
    std::vector<float> u(static_cast<std::size_t>(x.numel())), v(u.size());
    stream(a.device()).download(u.data(), x.storage(), 0, u.size() * 4);
    stream(a.device()).download(v.data(), y.storage(), 0, v.size() * 4);
    double worst = 0;
    const std::size_t part = u.size() / kHeads;
    for (std::size_t h = 0; h < kHeads; h++) {
        double error = 0, norm = 0;
        for (std::size_t i = h * part; i < (h + 1) * part; i++) error += std::pow(u[i] - v[i], 2), norm += v[i] * v[i];
        const double e = std::sqrt(error / norm);
        worst = e > worst || e != e ? e : worst;
    }
    return worst;
}

std::uint64_t bits(const Tensor& a) {
    std::vector<std::uint16_t> u(static_cast<std::size_t>(a.numel()));
    stream(a.device()).download(u.data(), a.storage(), 0, u.size() * 2);
    std::uint64_t h = 0xcbf29ce484222325;
    for (const std::uint16_t x : u) h = (h ^ x) * 0x100000001b3;
    return h;
}

void reset(const Data& d) {
    stream(d.state.device()).copy(d.after.storage(), 0, d.state.storage(), 0, std::size_t{kHeads} * 65536);
}

void run_chain(const Data& d, const Kernel& first, const Kernel& second, std::uint32_t columns, const std::string& plan,
               std::uint32_t a_group, const Kernel* last) {
    std::vector<Slab> slabs;
    std::istringstream words(plan);
    std::uint32_t at = 0;
    for (std::string word; std::getline(words, word, ',');) {
        const auto tiles = static_cast<std::uint32_t>(std::atoi(word.c_str()));
        slabs.push_back({at, tiles});
        at += tiles;
    }
    if (at != kTiles) throw std::runtime_error("slabs do not add up");
    reset(d);
    prepare(d, first, slabs[0], d.workspace[0], a_group);
    for (std::size_t i = 0; i < slabs.size(); i++) {
        const bool narrow = last && i + 1 == slabs.size();
        scan(d, narrow ? *last : second, slabs[i], d.workspace[i % 2], narrow ? 32 : columns);
        if (i + 1 < slabs.size()) prepare(d, first, slabs[i + 1], d.workspace[(i + 1) % 2], a_group);
    }
}

/// A line of the list, ready to be timed: pipelines are built and errors known, so that the GPU keeps its clock between
/// lines.
struct Ready {
    std::string kind{}, label{}, remarks{};
    std::function<void()> call{};
};

Ready ready_prepare(const Data& d, std::istringstream& words, const std::string& file) {
    std::uint32_t a_group = 1, stop = 0;
    words >> a_group >> stop;
    const Kernel& kernel = kernel_of(file, "kda_fast_prepare");
    return {.call = [&d, &kernel, a_group, stop] { prepare(d, kernel, {0, kTiles}, d.workspace[0], a_group, stop); }};
}

Ready ready_scan(const Data& d, std::istringstream& words, const std::string& file) {
    std::uint32_t columns = 64;
    words >> columns;
    const Kernel& kernel = kernel_of(file, "kda_fast_scan");
    return {.call = [&d, &kernel, columns] { scan(d, kernel, {0, kTiles}, d.workspace[0], columns); }};
}

Ready ready_chain(const Data& d, std::istringstream& words, const std::string& file) {
    std::string other, plan, narrow;
    std::uint32_t columns = 64, a_group = 1;
    words >> other >> columns >> plan >> a_group >> narrow;
    const Kernel &first = kernel_of(file, "kda_fast_prepare"), &second = kernel_of(other, "kda_fast_scan");
    const Kernel* last = narrow.empty() ? nullptr : &kernel_of(narrow, "kda_fast_scan");
    const auto call = [&d, &first, &second, columns, plan, a_group, last] {
        run_chain(d, first, second, columns, plan, a_group, last);
    };
    call();
    const double o = difference(d.output, d.strict_output), s = difference(d.after, d.strict_state);
    const std::uint64_t one = bits(d.output);
    call();
    return {.remarks = fmt::format("{}{}  o {:.1e} S {:.1e} {:08x}{}", plan, last ? " narrow" : "", o, s,
                                   one & 0xffffffff, bits(d.output) == one ? "" : " BITS DIFFER"),
            .call = call};
}

Ready ready(const Data& d, const std::string& line) {
    std::istringstream words(line);
    std::string kind, label, file;
    words >> kind >> label >> file;
    fmt::print(stderr, "{}\n", label);
    Ready r;
    if (kind == "prepare")
        r = ready_prepare(d, words, file);
    else if (kind == "scan")
        r = ready_scan(d, words, file);
    else if (kind == "chain")
        r = ready_chain(d, words, file);
    else if (kind == "prototype") {
        const Kernel& kernel = kernel_of(file, "main");
        r.call = [&d, &kernel, scans = label.starts_with("scan")] { prototype(d, kernel, scans); };
    } else if (kind == "resident") {
        const Kernel& kernel = kernel_of(file, "main");
        std::uint32_t groups = 132;
        words >> groups;
        r.remarks = fmt::format("{} workgroups", groups);
        r.call = [&d, &kernel, groups] {
            struct {
                Address to;
                std::uint32_t unused[2];
            } a{d.output.address(), {}};
            stream(d.output.device()).launch(kernel, DType::none, {}, {groups}, a, {}, {d.output});
        };
    } else {
        throw std::runtime_error("unknown line");
    }
    r.kind = kind, r.label = label;
    r.call();
    stream(d.query.device()).synchronize();
    return r;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "usage: bench_kda_lab <list> [seconds per line] [device]\n");
        return 2;
    }
    const double seconds = argc > 2 ? std::atof(argv[2]) : 0.3;
    const Data d = make(parse_device(argc > 3 ? argv[3] : "vulkan:0"));
    std::ifstream list(argv[1]);
    std::vector<Ready> lines;
    for (std::string line; std::getline(list, line);) {
        if (line.empty() || line[0] == '#') continue;
        try {
            lines.push_back(ready(d, line));
        } catch (const std::exception& e) {
            fmt::print("{}: {}\n", line, e.what());
        }
    }
    reset(d);
    if (!lines.empty()) time_of(d.query.device(), 1.5, lines[0].call);
    for (const Ready& r : lines) {
        const auto [median, least] = time_of(d.query.device(), seconds, r.call);
        fmt::print("{:10} {:22} {:.4f} ms, least {:.4f}  {}\n", r.kind, r.label, median, least, r.remarks);
        std::fflush(stdout);
    }
}
