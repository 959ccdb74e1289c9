#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkml/autograd/grad_mode.h"
#include "vkml/core/tensor.h"

/// The tape: one node per recorded operator. Operators call `record`; the engine walks the nodes backwards.
namespace vkml {

class Backward;

/// One gradient per input, in order; undefined where an input gets none.
using Grads = std::vector<Tensor>;
/// Computes the inputs' gradients with differentiable operators, so that second order works. It may capture numbers and
/// tensors nobody else can reach; everything else comes through Backward, which notices what has changed since.
using GradFunction = std::function<Grads(const Backward&)>;

/// What the gradient will read again. Bit i stands for input or output i.
struct Keep {
    std::uint32_t inputs = 0, outputs = 0;
    bool view = false;  // the output shares the input's storage
};
template <class... Index>
constexpr Keep keep_inputs(Index... i) {
    return {.inputs = ((1u << i) | ...)};
}
inline constexpr Keep keep_output{.outputs = 1};
inline constexpr Keep keep_nothing{};
inline constexpr Keep view_of_input{.view = true};

/// A tensor kept for the gradient, with the version its storage had.
struct Saved {
    Tensor tensor;
    std::uint32_t version = 0;
};

/// Where a gradient flows next: into a node, or into a leaf.
struct Edge {
    std::shared_ptr<Node> node;
    int output = 0;
    std::shared_ptr<AutogradMeta> leaf;

    bool valid() const { return node || leaf; }
};

class Node : public std::enable_shared_from_this<Node> {
  public:
    Node(std::string_view op, GradFunction function);
    ~Node();
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    std::string op;
    std::uint64_t sequence;  // later nodes have larger numbers: descending order is a topological order
    GradFunction function;
    std::vector<Edge> edges;  // one per input
    std::vector<Saved> inputs, outputs;
    std::vector<std::weak_ptr<AutogradMeta>> results;  // of the outputs
    bool view = false;
    bool released = false;  // what was kept is dropped: a later backward through this node raises Error
};

/// What a gradient function sees of its node.
class Backward {
  public:
    Backward(Node& node, std::span<const Tensor> grads, std::span<const char> needed)
        : node_(node), grads_(grads), needed_(needed) {}

    /// Gradient of an output; undefined if the loss does not depend on that output (only with several outputs).
    const Tensor& grad(int output = 0) const { return grads_[static_cast<std::size_t>(output)]; }
    /// A kept input or output, its history attached. Throws Error if it was modified in place since.
    Tensor input(int i) const;
    Tensor output(int i = 0) const;
    /// False when nobody wants the gradient of that input.
    bool needs(int i) const { return needed_[static_cast<std::size_t>(i)] != 0; }

  private:
    Node& node_;
    std::span<const Tensor> grads_;
    std::span<const char> needed_;
};

/// A tensor argument of record(), by reference.
struct TensorArg {
    TensorArg(const Tensor& t) : tensor(&t) {}
    const Tensor* tensor;
};
using Inputs = std::span<const TensorArg>;

/// True when recording is on and one of the inputs has or wants a gradient.
bool tracks(Inputs inputs);
/// Makes a node for outputs computed from inputs. Called by record() once tracks() said yes.
void attach(std::string_view op, std::span<const Tensor> outputs, Inputs inputs, Keep keep, GradFunction function);

/// Puts an operator on the tape and returns its output. Costs a check when no input wants a gradient.
template <class F>
Tensor record(std::string_view op, Tensor output, std::initializer_list<TensorArg> inputs, Keep keep, F&& function) {
    const Inputs span(inputs.begin(), inputs.size());
    if (tracks(span)) attach(op, {&output, 1}, span, keep, std::forward<F>(function));
    return output;
}
/// The same for several outputs, and for a number of inputs known at run time.
template <class F>
std::vector<Tensor> record(std::string_view op, std::vector<Tensor> outputs, Inputs inputs, Keep keep, F&& function) {
    if (tracks(inputs)) attach(op, outputs, inputs, keep, std::forward<F>(function));
    return outputs;
}

/// Refuses an in-place write that the tape could not follow: on a leaf that requires grad, or on a view of a recorded
/// tensor (Error). Call it before the write, `wrote_in_place` after.
void check_in_place(std::string_view op, const Tensor& target);
/// The same for a write of `sources`; refuses also a recorded source for a view of an unrecorded tensor, whose other
/// views would keep the values without the history.
void check_in_place(std::string_view op, const Tensor& target, Inputs sources);
/// Raises the version of the target's storage.
void wrote_in_place(const Tensor& target);

}  // namespace vkml
