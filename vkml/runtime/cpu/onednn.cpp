#include "vkml/runtime/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>

#include "vkml/runtime/cpu/parallel.h"

namespace vkml::cpu {
namespace {

using Memory = dnnl::memory;

const dnnl::engine& engine() {
    static const auto* cpu = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // outlives every thread's primitives
    return *cpu;
}

struct Key {
    MatmulProblem problem;
    int threads = 1;
    bool operator==(const Key&) const = default;
};
struct Hash {
    std::size_t operator()(const Key& key) const {
        const MatmulProblem& p = key.problem;
        std::uint64_t h =
            static_cast<std::uint64_t>(p.dtype) * 2 + p.bias + static_cast<std::uint64_t>(key.threads) * 64;
        const auto mix = [&](std::int64_t v) {
            h = (h ^ static_cast<std::uint64_t>(v)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
        };
        for (const std::int64_t v : {p.m, p.n, p.k, p.outer, p.inner}) mix(v);
        for (const std::int64_t v : p.a_strides) mix(v);
        for (const std::int64_t v : p.b_strides) mix(v);
        return h;
    }
};

/// A compiled product with memory objects whose pointers are set before each run.
struct Product {
    bool usable = false;
    dnnl::matmul primitive;
    Memory a, b, c, bias, scratch;
    std::unordered_map<int, Memory> arguments;
};

Memory::desc describe(DType dtype, const std::int64_t (&strides)[4], std::int64_t outer, std::int64_t inner,
                      std::int64_t rows, std::int64_t columns) {
    const auto type = dtype == DType::bf16 ? Memory::data_type::bf16 : Memory::data_type::f32;
    Memory::dims dims = {rows, columns}, steps = {strides[2], strides[3]};
    // The stride of an extent of 1 means nothing, but oneDNN looks at it: make it packed.
    if (columns == 1) steps[1] = 1;
    if (rows == 1) steps[0] = columns * steps[1];
    const auto add_axis = [&](std::int64_t extent, std::int64_t stride) {
        // oneDNN broadcasts an extent of 1. Its stride lies beyond all others, or 3.7 takes the wrong batch axis where
        // a batch is interleaved with rows.
        std::int64_t beyond = 1;
        for (std::size_t i = 0; i < dims.size(); i++) beyond = std::max(beyond, dims[i] * steps[i]);
        dims.insert(dims.begin(), stride == 0 ? 1 : extent);
        steps.insert(steps.begin(), stride == 0 ? beyond : stride);
    };
    if (outer > 1 || inner > 1) add_axis(inner, strides[1]);
    if (outer > 1) add_axis(outer, strides[0]);
    return {dims, type, steps};
}

#if DNNL_VERSION_MAJOR >= 3
dnnl::matmul::primitive_desc plan(const Memory::desc& a, const Memory::desc& b, const Memory::desc* bias,
                                  const Memory::desc& c, const dnnl::primitive_attr& attributes) {
    if (bias) return {engine(), a, b, *bias, c, attributes};
    return {engine(), a, b, c, attributes};
}
#else
dnnl::matmul::primitive_desc plan(const Memory::desc& a, const Memory::desc& b, const Memory::desc* bias,
                                  const Memory::desc& c, const dnnl::primitive_attr& attributes) {
    if (bias) return {dnnl::matmul::desc(a, b, *bias, c), attributes, engine()};
    return {dnnl::matmul::desc(a, b, c), attributes, engine()};
}
#endif

std::unique_ptr<Product> make(const MatmulProblem& p) {
    auto product = std::make_unique<Product>();
#if DNNL_VERSION_MAJOR >= 3
    // 3.7 adds a single row in another order than the rows of a batch where K is larger than this.
    constexpr std::int64_t kLargestK = 1024;
    if (p.k > kLargestK) return product;
#endif
    const std::int64_t c_strides[4] = {p.inner * p.m * p.n, p.m * p.n, p.n, 1}, bias_strides[4] = {0, 0, p.n, 1};
    Memory::desc a, b, c, bias;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    try {
        // Refuses strides of one axis that are shorter than the reach of another, as in every second of 9 rows.
        a = describe(p.dtype, p.a_strides, p.outer, p.inner, p.m, p.k);
        b = describe(p.dtype, p.b_strides, p.outer, p.inner, p.k, p.n);
        c = describe(p.dtype, c_strides, p.outer, p.inner, p.m, p.n);
        bias = describe(p.dtype, bias_strides, p.outer, p.inner, 1, p.n);
        const auto descriptor = plan(a, b, p.bias ? &bias : nullptr, c, attributes);
        // The gemm-based kernels split K by the number of rows or threads; brgemm was seen to keep one order.
        if (!std::string_view(descriptor.impl_info_str()).starts_with("brg")) return product;
        product->primitive = dnnl::matmul(descriptor);
        product->scratch = Memory(descriptor.scratchpad_desc(), engine());
    } catch (const dnnl::error&) {
        return product;  // nothing here for this problem
    }
    product->a = Memory(a, engine(), nullptr);
    product->b = Memory(b, engine(), nullptr);
    product->c = Memory(c, engine(), nullptr);
    product->arguments = {{DNNL_ARG_SRC, product->a},
                          {DNNL_ARG_WEIGHTS, product->b},
                          {DNNL_ARG_DST, product->c},
                          {DNNL_ARG_SCRATCHPAD, product->scratch}};
    if (p.bias) {
        product->bias = Memory(bias, engine(), nullptr);
        product->arguments.emplace(DNNL_ARG_BIAS, product->bias);
    }
    product->usable = true;
    return product;
}

/// oneDNN's team is OpenMP's: sets its size while it lives.
class Threads {
  public:
    explicit Threads(int count) : before_(omp_get_max_threads()), count_(count) {
        if (count != before_) omp_set_num_threads(count);
    }
    ~Threads() {
        if (count_ != before_) omp_set_num_threads(before_);
    }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    int count() const { return count_; }

  private:
    int before_, count_;
};

}  // namespace

bool onednn_matmul(const MatmulProblem& problem, const void* a, const void* b, void* c, const void* bias) {
    constexpr std::size_t kMostPrimitives = 512;
    thread_local std::unordered_map<Key, std::unique_ptr<Product>, Hash> products;
    thread_local dnnl::stream stream(engine());
    // Waking another thread costs some microseconds. The number of threads does not change the sums.
    constexpr double kWorthThreads = 2e6;
    const double work = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                        static_cast<double>(problem.k) * static_cast<double>(problem.outer * problem.inner);
    const Threads threads(work < kWorthThreads ? 1 : thread_count());
    const Key key{problem, threads.count()};
    auto found = products.find(key);
    if (found == products.end()) {
        if (products.size() >= kMostPrimitives) products.clear();
        found = products.emplace(key, make(problem)).first;
    }
    Product& product = *found->second;
    if (!product.usable) return false;
    product.a.set_data_handle(const_cast<void*>(a));
    product.b.set_data_handle(const_cast<void*>(b));
    product.c.set_data_handle(c);
    if (problem.bias) product.bias.set_data_handle(const_cast<void*>(bias));
    product.primitive.execute(stream, product.arguments);
    return true;
}

}  // namespace vkml::cpu
