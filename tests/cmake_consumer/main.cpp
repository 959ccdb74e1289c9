#include <cstdio>

#include "vkml/vkml.h"

int main() {
    const vkml::Tensor t = vkml::full({2, 3}, 1.5, vkml::DType::f32, vkml::Device{});
    const double element = t.permute({1, 0}).contiguous().to_vector<float>()[5];
    std::printf("%s %g\n", vkml::to_string(t.shape()).c_str(), element);
    return element == 1.5 ? 0 : 1;
}
