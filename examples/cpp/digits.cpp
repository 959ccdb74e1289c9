// Trains a classifier on handwritten digits with the C++ API alone. The images come from a CSV that the Python example
// writes:
//
//     python examples/digits.py --export-csv digits.csv
//     build/release/examples/digits digits.csv [device] [epochs]
//
// A row is: part (0 train, 1 test), label, 64 pixels in [0, 1].

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "vkml/vkml.h"

namespace {

using vkml::Device;
using vkml::DType;
using vkml::Tensor;

constexpr std::int64_t kPixels = 64, kClasses = 10, kBatch = 64;

struct Digits {
    std::vector<float> pixels;
    std::vector<std::int64_t> labels;
    std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

/// The two parts of the file. Throws vkml::Error for a file that is none of ours.
std::pair<Digits, Digits> read_csv(const std::string& path) {
    std::ifstream file(path);
    vkml::check<vkml::Error>(file.good(), "digits: expected a readable file, got ", path);
    std::pair<Digits, Digits> out;
    for (std::string line; std::getline(file, line);) {
        std::istringstream row(line);
        std::vector<float> values;
        for (std::string cell; std::getline(row, cell, ',');) values.push_back(std::strtof(cell.c_str(), nullptr));
        const bool fits = values.size() == kPixels + 2 && values[1] >= 0 && values[1] < kClasses;
        vkml::check<vkml::Error>(fits, "digits: expected part, label and 64 pixels in a row, got ", line.substr(0, 60));
        Digits& part = values[0] == 0 ? out.first : out.second;
        part.labels.push_back(static_cast<std::int64_t>(values[1]));
        part.pixels.insert(part.pixels.end(), values.begin() + 2, values.end());
    }
    vkml::check<vkml::Error>(out.first.size() >= kBatch && out.second.size() > 0, "digits: expected at least ", kBatch,
                             " images to train and one to test, got ", out.first.size(), " and ", out.second.size());
    return out;
}

/// Two hidden layers of GELU.
struct Network {
    std::vector<Tensor> parameters;

    explicit Network(Device device) {
        for (auto [in, out] : {std::pair<std::int64_t, std::int64_t>{kPixels, 256}, {256, 128}, {128, kClasses}}) {
            const double bound = 1 / std::sqrt(static_cast<double>(in));
            for (const vkml::Shape& shape : {vkml::Shape{out, in}, vkml::Shape{out}}) {
                const Tensor draw = vkml::rand(shape, vkml::next_draw(), DType::f32, device);
                parameters.push_back((draw * (2 * bound) - bound).requires_grad_());
            }
        }
    }

    Tensor operator()(const Tensor& images, bool training) const {
        const auto drop = [training](const Tensor& x, double p) { return training ? vkml::dropout(x, p) : x; };
        Tensor x = vkml::gelu(vkml::linear(drop(images, 0.05), parameters[0], parameters[1]));
        x = vkml::gelu(vkml::linear(drop(x, 0.3), parameters[2], parameters[3]));
        return vkml::linear(drop(x, 0.2), parameters[4], parameters[5]);
    }
};

Tensor images_of(const Digits& part, const std::vector<std::int64_t>& chosen, Device device) {
    std::vector<float> pixels;
    for (std::int64_t i : chosen)
        pixels.insert(pixels.end(), part.pixels.begin() + i * kPixels, part.pixels.begin() + (i + 1) * kPixels);
    return vkml::from_host(pixels.data(), {static_cast<std::int64_t>(chosen.size()), kPixels}, DType::f32, device);
}

Tensor labels_of(const Digits& part, const std::vector<std::int64_t>& chosen, Device device) {
    std::vector<std::int64_t> labels;
    for (std::int64_t i : chosen) labels.push_back(part.labels[static_cast<std::size_t>(i)]);
    return vkml::from_host(labels.data(), {static_cast<std::int64_t>(chosen.size())}, DType::i64, device);
}

/// A bar that grows on one line, which ends with the last epoch.
void show_progress(int epoch, int epochs, double loss) {
    constexpr int kWidth = 30;
    const int filled = epoch * kWidth / epochs;
    std::printf("\r[%s%s] epoch %*d/%d  loss %.4f%s", std::string(static_cast<std::size_t>(filled), '#').c_str(),
                std::string(static_cast<std::size_t>(kWidth - filled), '.').c_str(),
                static_cast<int>(std::to_string(epochs).size()), epoch, epochs, loss, epoch == epochs ? "\n" : "");
    std::fflush(stdout);
}

void train(const Network& network, const Digits& part, Device device, int epochs) {
    const vkml::OptimSettings first{
        .rule = vkml::OptimRule::adamw, .rate = 3e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    vkml::MultiTensorOptimizer optimizer(network.parameters, first);
    std::vector<std::int64_t> order(static_cast<std::size_t>(part.size()));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 generator(0);
    const std::int64_t steps = part.size() / kBatch;
    const auto started = std::chrono::steady_clock::now();
    for (int epoch = 0; epoch < epochs; epoch++) {
        std::shuffle(order.begin(), order.end(), generator);
        vkml::OptimSettings settings = first;
        settings.rate *= 0.5 + 0.5 * std::cos(M_PI * epoch / epochs);
        optimizer.set(settings);
        Tensor loss;
        for (std::int64_t step = 0; step < steps; step++) {
            const std::vector<std::int64_t> chosen(order.begin() + step * kBatch, order.begin() + (step + 1) * kBatch);
            loss = vkml::cross_entropy(network(images_of(part, chosen, device), true), labels_of(part, chosen, device));
            loss.backward();
            std::vector<Tensor> gradients;
            for (const Tensor& p : network.parameters) gradients.push_back(p.grad());
            optimizer.step(gradients);
            for (const Tensor& p : network.parameters) p.set_grad({});
        }
        show_progress(epoch + 1, epochs, loss.item());
    }
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - started;
    std::printf("time per step: %.2f ms\n", spent.count() / static_cast<double>(epochs * steps));
}

double accuracy(const Network& network, const Digits& part, Device device) {
    vkml::NoGrad no_grad;
    std::vector<std::int64_t> all(static_cast<std::size_t>(part.size()));
    std::iota(all.begin(), all.end(), 0);
    const std::vector<float> logits = network(images_of(part, all, device), false).to_vector<float>();
    std::int64_t right = 0;
    for (std::int64_t i = 0; i < part.size(); i++) {
        const auto row = logits.begin() + i * kClasses;
        right += std::max_element(row, row + kClasses) - row == part.labels[static_cast<std::size_t>(i)];
    }
    return static_cast<double>(right) / static_cast<double>(part.size());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: digits digits.csv [device] [epochs]\n";
        return 2;
    }
    try {
        const auto [training, test] = read_csv(argv[1]);
        const Device device = argc > 2 ? vkml::parse_device(argv[2]) : vkml::devices().front().device;
        vkml::manual_seed(0);
        const Network network(device);
        std::printf("device: %s, %lld images to train, %lld to test\n", vkml::to_string(device).c_str(),
                    static_cast<long long>(training.size()), static_cast<long long>(test.size()));
        train(network, training, device, argc > 3 ? std::stoi(argv[3]) : 40);
        std::printf("test accuracy: %.2f\n", accuracy(network, test, device));
    } catch (const vkml::Error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
