#pragma once
#include <algorithm>
#include <cstdint>

/// Parallel loops of the CPU kernels over the calling thread's OpenMP team.
namespace vkml::cpu {

/// Threads a kernel may use: VKML_THREADS, else OpenMP's number.
int thread_count();

/// Work worth waking another thread for, in elements of light arithmetic.
inline constexpr std::int64_t kGrain = 32768;

/// Calls body(begin, end) over disjoint ranges that cover [0, n), each at least `grain` long. The split depends on the
/// thread count: a result must not depend on it.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t grain, const Body& body) {
    if (n <= 0) return;
    const std::int64_t most = std::max<std::int64_t>(1, n / std::max<std::int64_t>(grain, 1));
    const int threads = static_cast<int>(std::min<std::int64_t>(thread_count(), most));
    if (threads <= 1) {
        body(std::int64_t{0}, n);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int i = 0; i < threads; i++) body(n * i / threads, n * (i + 1) / threads);
}

}  // namespace vkml::cpu
