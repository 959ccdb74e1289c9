// Finds the line y = 3 x + 1 by gradient descent: the C++ program of README.md, whole.
//
//     build/release/examples/fit_a_line

#include <cstdio>

#include "vkml/vkml.h"

int main() {
    const vkml::Device device = vkml::devices().front().device;  // the best there is
    const vkml::Tensor x = vkml::rand({64, 1}, vkml::next_draw(), vkml::DType::f32, device);
    const vkml::Tensor y = x * 3 + 1;
    const vkml::Tensor weight = vkml::zeros({1, 1}, vkml::DType::f32, device).requires_grad_();
    const vkml::Tensor bias = vkml::zeros({1}, vkml::DType::f32, device).requires_grad_();
    for (int step = 0; step < 300; step++) {
        vkml::mse_loss(vkml::linear(x, weight, bias), y).backward();
        const vkml::NoGrad no_grad;
        for (const vkml::Tensor& p : {weight, bias}) {
            p -= p.grad() * 0.5;
            p.set_grad({});
        }
    }
    std::printf("y = %.3f x + %.3f\n", weight.item(), bias.item());
}
