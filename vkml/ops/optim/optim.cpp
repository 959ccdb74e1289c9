#include "vkml/ops/optim/optim.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/optim/optim_kernel.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;

std::size_t state_count(const OptimSettings& s) {
    switch (s.rule) {
        case OptimRule::sgd:
            return s.beta1 != 0 ? 1 : 0;
        case OptimRule::lion:
            return 1;
        case OptimRule::rmsprop:
            return 3;
        default:
            return 2;
    }
}

/// The settings as the kernels read them, in the order of kOptim*.
std::vector<double> numbers_of(const OptimSettings& s) {
    const double rest2 = s.rule == OptimRule::sgd ? 1 - s.dampening : 1 - s.beta2;
    return {s.rate, s.weight_decay, s.beta1, 1 - s.beta1, s.beta2, rest2, s.eps};
}

}  // namespace

MultiTensorOptimizer::MultiTensorOptimizer(std::vector<Tensor> parameters, const OptimSettings& settings)
    : settings_(settings), parameters_(std::move(parameters)) {
    check(!parameters_.empty(), "optimizer: expected at least one parameter, got none");
    const Tensor& first = parameters_[0];
    check<DTypeError>(is_floating(first.dtype()), "optimizer: expected floating-point parameters, got ", first.dtype());
    value_ = first.dtype() == DType::f64 ? DType::f64 : DType::f32;
    for (const Tensor& p : parameters_) {
        check<DTypeError>(p.dtype() == first.dtype(), "optimizer: expected parameters of one dtype, got ",
                          first.dtype(), " and ", p.dtype());
        common_device("optimizer", {&first, &p});
        check(p.is_contiguous(), "optimizer: expected packed parameters, got strides ", p.strides());
        std::vector<Tensor> states;
        for (std::size_t i = 0; i < state_count(settings); i++) states.push_back(zeros(p.shape(), value_, p.device()));
        states_.push_back(std::move(states));
    }
    numbers_ = zeros({kOptimNumbers}, value_, first.device());
    write_numbers();
}

void MultiTensorOptimizer::set(const OptimSettings& settings) {
    const OptimSettings before = settings_;
    settings_ = settings;
    settings_.rule = before.rule;
    settings_.nesterov = before.nesterov;
    settings_.centered = before.centered;
    if (numbers_of(before) != numbers_of(settings_)) write_numbers();
}

void MultiTensorOptimizer::write_numbers() {
    const std::vector<double> wide = numbers_of(settings_);
    const std::vector<float> narrow(wide.begin(), wide.end());
    const bool f64 = value_ == DType::f64;
    const void* data = f64 ? static_cast<const void*>(wide.data()) : narrow.data();
    stream_of(numbers_).upload(numbers_.storage(), static_cast<std::size_t>(numbers_.offset()) * itemsize(value_), data,
                               wide.size() * itemsize(value_));
}

Tensor MultiTensorOptimizer::table_for(const std::vector<Tensor>& gradients, std::uint32_t& entries,
                                       std::uint32_t& groups) {
    std::vector<std::uint64_t> table;
    std::uint64_t first_group = 0;
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        if (!gradients[i].defined() || parameters_[i].numel() == 0) continue;
        const auto count = static_cast<std::uint64_t>(parameters_[i].numel());
        table.insert(table.end(), {parameters_[i].address(), gradients[i].address()});
        for (std::size_t s = 0; s < 3; s++) table.push_back(s < states_[i].size() ? states_[i][s].address() : 0);
        table.insert(table.end(), {count, first_group, 0});
        first_group += ceil_div(count, kOptimGroupElements);
    }
    check<Error>(first_group < (std::uint64_t{1} << 32), "optimizer: expected fewer than 2^42 parameters, got more");
    entries = static_cast<std::uint32_t>(table.size() / kOptimWords);
    groups = static_cast<std::uint32_t>(first_group);
    if (entries > 0 && (table != last_table_ || !table_.defined())) {
        table_ = from_host(table.data(), {static_cast<std::int64_t>(table.size())}, DType::i64, numbers_.device());
        last_table_ = std::move(table);
    }
    return table_;
}

void MultiTensorOptimizer::step(const std::vector<Tensor>& given) {
    check(given.size() == parameters_.size(), "optimizer: expected ", parameters_.size(), " gradients, got ",
          given.size());
    NoGrad no_grad;
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < given.size(); i++) {
        if (!given[i].defined()) {
            gradients.emplace_back();
            continue;
        }
        const Tensor& p = parameters_[i];
        check(given[i].shape() == p.shape(), "optimizer: expected a gradient of shape ", p.shape(), ", got ",
              given[i].shape());
        check<DTypeError>(given[i].dtype() == p.dtype(), "optimizer: expected a gradient of ", p.dtype(), ", got ",
                          given[i].dtype());
        common_device("optimizer", {&p, &given[i]});
        gradients.push_back(contiguous(given[i]));
    }
    OptimArgs args{};
    const Tensor table = table_for(gradients, args.entries, args.groups);
    if (args.entries == 0) return;
    args.table = table.address();
    args.numbers = numbers_.address();
    Stream& on = stream_of(numbers_);
    on.launch(optim_advance_kernel, value_, {}, {}, OptimAdvanceArgs{numbers_.address()}, {}, {numbers_});
    const Spec spec{kThreads, static_cast<std::uint32_t>(settings_.rule), settings_.beta1 != 0, settings_.nesterov,
                    settings_.centered};
    // The table reaches more tensors than a launch can list: order the step against each of them first.
    std::vector<Tensor> reads, writes;
    for (std::size_t i = 0; i < gradients.size(); i++) {
        if (!gradients[i].defined()) continue;
        reads.push_back(gradients[i]);
        writes.push_back(parameters_[i]);
        for (const Tensor& state : states_[i]) writes.push_back(state);
    }
    reads.push_back(numbers_);
    reads.push_back(table);
    on.launch_many(optim_step_kernel, parameters_[0].dtype(), spec, linear_grid(args.groups), args, reads, writes);
    for (std::size_t i = 0; i < gradients.size(); i++)
        if (gradients[i].defined()) wrote_in_place(parameters_[i]);
}

}  // namespace vkml
