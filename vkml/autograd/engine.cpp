#include "vkml/autograd/engine.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "vkml/autograd/arithmetic.h"
#include "vkml/core/gradient_lock.h"

namespace vkml {
namespace {

/// A hook may add and remove hooks, of this tensor too: those present at the start are called.
void call_hooks(AutogradMeta& meta, Tensor& gradient) {
    decltype(meta.hooks) hooks;
    {
        std::lock_guard lock(gradient_lock());
        hooks = meta.hooks;
    }
    for (const auto& [handle, hook] : hooks) {
        Tensor replaced = hook(gradient);
        if (!replaced.defined()) continue;
        check(replaced.shape() == gradient.shape(), "hook: expected a gradient of shape ", gradient.shape(), ", got ",
              replaced.shape());
        check<DTypeError>(replaced.dtype() == gradient.dtype(), "hook: expected a gradient of ", gradient.dtype(),
                          ", got ", replaced.dtype());
        check<DeviceError>(replaced.device() == gradient.device(), "hook: expected a gradient on ", gradient.device(),
                           ", got one on ", replaced.device());
        gradient = std::move(replaced);
    }
}

/// Other threads may add to the same tensor. The sum is made outside the lock, and again if one of them came first.
void add_to_grad(AutogradMeta& meta, Tensor gradient) {
    Tensor before;
    {
        std::lock_guard lock(gradient_lock());
        before = meta.grad;
    }
    for (;;) {
        Tensor sum;
        if (before.defined()) sum = add(before, gradient);
        // Whoever changes a gradient in place must not reach another tensor through it.
        else
            sum = gradient.is_contiguous() && gradient.is_unique() ? gradient : clone(gradient);
        Tensor now;
        std::lock_guard lock(gradient_lock());
        if (meta.grad.is(before)) {
            std::swap(meta.grad, sum);
            return;
        }
        now = meta.grad;
        std::swap(before, now);
    }
}

/// The nodes whose gradients are being computed now, on any thread. A pass that frees the graph frees a node only when
/// the last visitor has left.
class Visit {
  public:
    Visit(Node& node, bool frees) : node_(node), frees_(frees) {
        std::lock_guard lock(mutex());
        check<Error>(!node.released, node.op,
                     ": expected a graph kept by retain_graph=True, got one that a backward has freed");
        active().push_back(&node);
    }
    ~Visit() {
        GradFunction function;
        std::vector<Saved> inputs, outputs;
        std::lock_guard lock(mutex());
        active().erase(std::ranges::find(active(), &node_));
        if (finished_ && frees_) node_.released = true;
        if (!node_.released || std::ranges::find(active(), &node_) != active().end()) return;
        // What was kept is destroyed after the lock: Python objects may be among it.
        function.swap(node_.function);
        inputs.swap(node_.inputs);
        outputs.swap(node_.outputs);
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    void finish() { finished_ = true; }

  private:
    static ForkMutex& mutex() {
        static auto* instance = new ForkMutex;
        return *instance;
    }
    static std::vector<Node*>& active() {
        static auto* nodes = new std::vector<Node*>;
        return *nodes;
    }
    Node& node_;
    bool frees_, finished_ = false;
};

/// One backward pass: gradients waiting at nodes, worked off from the newest node to the oldest.
class Pass {
  public:
    Pass(BackwardOptions options, std::span<const Tensor> wanted) : options_(options), to_leaves_(wanted.empty()) {
        for (const Tensor& t : wanted) {
            const auto& meta = t.autograd();
            if (meta->node)
                wanted_outputs_.insert({{meta->node.get(), meta->output}, {}});
            else
                wanted_leaves_.insert({meta.get(), {}});
        }
    }

    void seed(const Tensor& output, const Tensor& gradient) {
        const auto& meta = output.autograd();
        if (!to_leaves_) mark_needed(meta);
        deliver(meta->node ? Edge{meta->node, meta->output, nullptr} : Edge{nullptr, 0, meta}, gradient);
    }

    void run() {
        GradMode mode(options_.create_graph);
        while (!queue_.empty()) {
            const std::shared_ptr<Node> node = queue_.top().node;
            queue_.pop();
            std::vector<Tensor> grads = std::move(pending_.at(node.get()));
            pending_.erase(node.get());
            visit(*node, grads);
        }
        for (auto& [meta, gradient] : leaf_grads_) accumulate(*meta, std::move(gradient));
    }

    Tensor result(const Tensor& t) const {
        const auto& meta = t.autograd();
        if (!meta->node) return wanted_leaves_.at(meta.get());
        return wanted_outputs_.at({meta->node.get(), meta->output});
    }

  private:
    struct Waiting {
        std::uint64_t sequence;
        std::shared_ptr<Node> node;
        bool operator<(const Waiting& other) const { return sequence < other.sequence; }
    };

    void visit(Node& node, std::vector<Tensor>& grads) {
        Visit visit(node, !options_.retain_graph && !options_.create_graph);
        for (std::size_t i = 0; i < grads.size(); i++) {
            if (!grads[i].defined()) continue;
            // A node recorded on an integer or undefined output has no result there.
            if (const auto meta = node.results[i].lock()) finish_output(*meta, grads[i]);
            const auto found = wanted_outputs_.find({&node, static_cast<int>(i)});
            if (found != wanted_outputs_.end()) found->second = grads[i];
        }
        std::vector<char> needed(node.edges.size());
        bool any = false;
        for (std::size_t i = 0; i < needed.size(); i++) any |= needed[i] = wants(node.edges[i]);
        if (any) {
            const Grads out = node.function(Backward(node, grads, needed));
            VKML_ASSERT(out.size() == node.edges.size());
            for (std::size_t i = 0; i < out.size(); i++)
                if (needed[i] && out[i].defined()) deliver(node.edges[i], out[i]);
        }
        visit.finish();
    }

    void finish_output(AutogradMeta& meta, Tensor& gradient) {
        call_hooks(meta, gradient);
        if (meta.retains_grad) add_to_grad(meta, gradient);
    }

    bool wants(const Edge& edge) const {
        if (to_leaves_) return edge.valid();
        if (edge.leaf) return wanted_leaves_.contains(edge.leaf.get());
        return edge.node && needed_.contains(edge.node.get());
    }

    void deliver(const Edge& edge, const Tensor& gradient) {
        if (edge.leaf) {
            Tensor& sum = to_leaves_ ? leaf_grads_[edge.leaf] : wanted_leaves_[edge.leaf.get()];
            sum = sum.defined() ? add(sum, gradient) : gradient;
            return;
        }
        auto [slot, fresh] = pending_.try_emplace(edge.node.get());
        if (fresh) {
            slot->second.resize(edge.node->results.size());
            queue_.push({edge.node->sequence, edge.node});
        }
        Tensor& sum = slot->second[static_cast<std::size_t>(edge.output)];
        sum = sum.defined() ? add(sum, gradient) : gradient;
    }

    void accumulate(AutogradMeta& leaf, Tensor gradient) {
        call_hooks(leaf, gradient);
        add_to_grad(leaf, std::move(gradient));
    }

    /// Marks the nodes from which a wanted tensor can be reached. Oldest first, so every answer is known when it is
    /// asked for.
    void mark_needed(const std::shared_ptr<AutogradMeta>& root) {
        if (!root->node) return;
        std::vector<Node*> order, stack{root->node.get()};
        std::unordered_set<Node*> seen{root->node.get()};
        while (!stack.empty()) {
            Node* node = stack.back();
            stack.pop_back();
            order.push_back(node);
            for (const Edge& edge : node->edges)
                if (edge.node && seen.insert(edge.node.get()).second) stack.push_back(edge.node.get());
        }
        std::ranges::sort(order, {}, &Node::sequence);
        for (const auto& [key, gradient] : wanted_outputs_) needed_.insert(key.first);
        for (Node* node : order)
            for (const Edge& edge : node->edges)
                if (wants(edge)) needed_.insert(node);
    }

    BackwardOptions options_;
    bool to_leaves_;
    std::map<std::pair<Node*, int>, Tensor> wanted_outputs_;
    std::unordered_map<AutogradMeta*, Tensor> wanted_leaves_;
    std::unordered_set<Node*> needed_;
    std::unordered_map<Node*, std::vector<Tensor>> pending_;
    std::priority_queue<Waiting> queue_;
    std::unordered_map<std::shared_ptr<AutogradMeta>, Tensor> leaf_grads_;
};

Tensor initial_gradient(std::string_view op, const Tensor& output, const Tensor& gradient) {
    check<Error>(output.requires_grad(), op, ": expected a tensor that requires grad, got one that does not");
    if (!gradient.defined()) {
        check<Error>(output.numel() == 1, op, ": expected a gradient for an output of shape ", output.shape(),
                     ", got none");
        return full(output.shape(), 1.0, output.dtype(), output.device());
    }
    check(gradient.shape() == output.shape(), op, ": gradient: expected shape ", output.shape(), ", got ",
          gradient.shape());
    check<DTypeError>(gradient.dtype() == output.dtype(), op, ": gradient: expected ", output.dtype(), ", got ",
                      gradient.dtype());
    check<DeviceError>(gradient.device() == output.device(), op, ": gradient: expected a tensor on ", output.device(),
                       ", got one on ", gradient.device());
    return gradient;
}

void run(std::string_view op, Pass& pass, std::span<const Tensor> outputs, std::span<const Tensor> gradients) {
    check(gradients.empty() || gradients.size() == outputs.size(), op, ": expected ", outputs.size(),
          " gradients, got ", gradients.size());
    std::vector<Tensor> initial;
    for (std::size_t i = 0; i < outputs.size(); i++)
        initial.push_back(initial_gradient(op, outputs[i], gradients.empty() ? Tensor{} : gradients[i]));
    for (std::size_t i = 0; i < outputs.size(); i++) pass.seed(outputs[i], initial[i]);
    pass.run();
}

}  // namespace

void backward(const Tensor& output, const Tensor& gradient, BackwardOptions options) {
    backward(std::span(&output, 1), std::span(&gradient, 1), options);
}

void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients, BackwardOptions options) {
    Pass pass(options, {});
    run("backward", pass, outputs, gradients);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> gradients, BackwardOptions options) {
    check(!inputs.empty(), "grad: expected at least one input, got none");
    for (const Tensor& t : inputs)
        check<Error>(t.requires_grad(), "grad: expected inputs that require grad, got one that does not");
    Pass pass(options, inputs);
    run("grad", pass, outputs, gradients);
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < inputs.size(); i++) {
        out.push_back(pass.result(inputs[i]));
        check<Error>(out.back().defined() || options.allow_unused, "grad: input ", i,
                     ": expected a tensor the outputs depend on, got an unused one (allow_unused=True permits it)");
    }
    return out;
}

}  // namespace vkml
