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

/// Which of the three states a rule keeps; as keeps() in optim.slang.
std::array<bool, 3> states_of(const OptimSettings& s) {
    switch (s.rule) {
        case OptimRule::sgd:
            return {s.beta1 != 0, false, false};
        case OptimRule::lion:
        case OptimRule::adagrad:
            return {true, false, false};
        case OptimRule::rmsprop:
            return {true, s.centered, s.beta1 != 0};
        default:
            return {true, true, false};
    }
}

/// The settings as the kernels read them, in the order of kOptim*.
std::vector<double> numbers_of(const OptimSettings& s) {
    const double rest2 = s.rule == OptimRule::sgd ? 1 - s.dampening : 1 - s.beta2;
    return {s.rate, s.weight_decay, s.beta1, 1 - s.beta1, s.beta2, rest2, s.eps, s.dampening};
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
    }
    const double start = settings.rule == OptimRule::adagrad ? settings.dampening : 0;
    const Unrecorded once(stream_of(first));  // a captured step goes on, instead of starting anew at every replay
    for (const Tensor& p : parameters_) {
        auto& states = states_.emplace_back();
        for (std::size_t i = 0; i < states.size(); i++)
            if (states_of(settings)[i]) states[i] = full(p.shape(), start, value_, p.device());
    }
    numbers_ = zeros({kOptimNumbers}, value_, first.device());
    progress_ = zeros({static_cast<std::int64_t>(parameters_.size()), kOptimProgress}, value_, first.device());
    write_numbers();
}

void MultiTensorOptimizer::set(const OptimSettings& settings) {
    const OptimSettings before = settings_;
    settings_ = settings;
    settings_.rule = before.rule;
    settings_.nesterov = before.nesterov;
    settings_.centered = before.centered;
    const bool same = states_of(before) == states_of(settings_);
    if (!same) settings_ = before;
    check(same, "optimizer: expected momentum to stay absent or present, got it switched");
    if (numbers_of(before) != numbers_of(settings_)) write_numbers();
}

void MultiTensorOptimizer::write_numbers() {
    const std::vector<double> wide = numbers_of(settings_);
    const std::vector<float> narrow(wide.begin(), wide.end());
    const Unrecorded once(stream_of(numbers_));  // replays follow a rate that is set between them
    const bool f64 = value_ == DType::f64;
    const void* data = f64 ? static_cast<const void*>(wide.data()) : narrow.data();
    stream_of(numbers_).upload(numbers_.storage(), static_cast<std::size_t>(numbers_.offset()) * itemsize(value_), data,
                               wide.size() * itemsize(value_));
}

std::vector<Tensor> MultiTensorOptimizer::states(std::size_t i) const {
    std::vector<Tensor> kept;
    for (const Tensor& state : states_[i])
        if (state.defined()) kept.push_back(state);
    return kept;
}

std::vector<Tensor> MultiTensorOptimizer::packed_gradients(const std::vector<Tensor>& given) const {
    check(given.size() == parameters_.size(), "optimizer: expected ", parameters_.size(), " gradients, got ",
          given.size());
    std::vector<Tensor> gradients(given.size());
    for (std::size_t i = 0; i < given.size(); i++) {
        if (!given[i].defined()) continue;
        const Tensor& p = parameters_[i];
        check(given[i].shape() == p.shape(), "optimizer: expected a gradient of shape ", p.shape(), ", got ",
              given[i].shape());
        check<DTypeError>(given[i].dtype() == p.dtype(), "optimizer: expected a gradient of ", p.dtype(), ", got ",
                          given[i].dtype());
        common_device("optimizer", {&p, &given[i]});
        gradients[i] = contiguous(given[i]);
    }
    return gradients;
}

void MultiTensorOptimizer::step(const std::vector<Tensor>& given, const Tensor& skip) {
    NoGrad no_grad;
    const std::vector<Tensor> gradients = packed_gradients(given);
    if (skip.defined()) {
        check<DTypeError>(skip.dtype() == DType::i32, "optimizer: skip: expected int32, got ", skip.dtype());
        check(skip.numel() == 1, "optimizer: skip: expected one element, got shape ", skip.shape());
        common_device("optimizer", {&numbers_, &skip});
    }
    // The table reaches more tensors than a launch can list by itself.
    std::vector<Tensor> reads{numbers_, progress_}, writes;
    table_.clear();
    for (std::size_t i = 0; i < gradients.size(); i++) {
        if (!gradients[i].defined() || parameters_[i].numel() == 0) continue;
        const auto address = [](const Tensor& t) { return t.defined() ? t.address() : Address{0}; };
        const auto& states = states_[i];
        table_.add({parameters_[i].address(), gradients[i].address(), address(states[0]), address(states[1]),
                    address(states[2]), progress_.address() + i * kOptimProgress * itemsize(value_)},
                   parameters_[i].numel());
        reads.push_back(gradients[i]);
        writes.push_back(parameters_[i]);
        writes.insert(writes.end(), states.begin(), states.end());
    }
    if (table_.entries() == 0) return;
    const Tensor& table = table_.upload(numbers_.device());
    reads.push_back(table);
    reads.push_back(skip);
    const Address flag = skip.defined() ? skip.address() : 0;
    Stream& on = stream_of(numbers_);
    const auto rule = static_cast<std::uint32_t>(settings_.rule);
    on.launch(optim_advance_kernel, value_, Spec{kThreads, rule}, linear_grid(ceil_div(table_.entries(), kThreads)),
              OptimAdvanceArgs{table.address(), numbers_.address(), flag, table_.entries()}, {table, numbers_, skip},
              {progress_});
    const OptimArgs args{table.address(), numbers_.address(), flag, table_.entries(), table_.groups()};
    const Spec spec{kThreads, rule, settings_.beta1 != 0, settings_.nesterov, settings_.centered};
    on.launch_many(optim_step_kernel, parameters_[0].dtype(), spec, linear_grid(args.groups), args, reads, writes);
    for (std::size_t i = 0; i < gradients.size(); i++)
        if (gradients[i].defined()) wrote_in_place(parameters_[i]);
}

}  // namespace vkml
