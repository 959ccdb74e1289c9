// Host cost of recording a small operator: a one-element add. Prints one JSON object per device named on the command
// line.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "vkml/autograd/arithmetic.h"
#include "vkml/vkml.h"

namespace {

using namespace vkml;

double now_us() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Median microseconds per call, over windows too short to be submitted, with an idle device before each: recording
/// only.
template <class Call>
double per_call(Device device, const Call& call) {
    constexpr int kWindow = 7, kWindows = 3000;
    std::vector<double> windows;
    for (int w = 0; w < kWindows; w++) {
        stream(device).synchronize();
        const double begin = now_us();
        for (int i = 0; i < kWindow; i++) call();
        windows.push_back((now_us() - begin) / kWindow);
    }
    std::ranges::nth_element(windows, windows.begin() + kWindows / 2);
    return windows[kWindows / 2];
}

void report(const char* name) {
    const Device device = parse_device(name);
    const Tensor a = full({1}, 1.5, DType::f32, device), b = full({1}, 0.25, DType::f32, device);
    const Tensor leaf = clone(a).requires_grad_();
    fmt::print(
        "{{\"device\": \"{}\", \"add_us\": {:.3f}, \"add_with_autograd_us\": {:.3f}, \"allocate_us\": {:.3f}}}\n", name,
        per_call(device, [&] { add(a, b); }), per_call(device, [&] { add(leaf, b); }),
        per_call(device, [&] { empty({1}, DType::f32, device); }));
}

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) report(argv[i]);
}
