#include "vkml/autograd/node.h"

#include <atomic>

namespace vkml {
namespace {

thread_local bool t_enabled = true;
std::atomic<std::uint64_t> g_sequence{0};

/// Nodes whose last reference went while another node was being destroyed: a long chain must not recurse.
thread_local std::vector<std::shared_ptr<Node>>* t_dying = nullptr;

Saved save(const Tensor& t) {
    if (!t.defined()) return {};
    return {t, t.storage() ? t.storage()->version.load() : 0};
}

void check_unchanged(const Saved& saved, const Node& node, const char* what, int i) {
    if (!saved.tensor.defined() || !saved.tensor.storage()) return;
    const std::uint32_t now = saved.tensor.storage()->version.load();
    check<Error>(now == saved.version, node.op, ": expected ", what, " ", i,
                 " unchanged since the forward, got one modified in place (version ", now, ", expected ", saved.version,
                 ")");
}

void check_kept(const Node& node) {
    check<Error>(!node.released, node.op,
                 ": expected a graph kept by retain_graph=True, got one that a backward has freed");
}

Edge edge_of(const Tensor& t) {
    if (!t.defined() || !t.autograd()) return {};
    const auto& meta = t.autograd();
    if (meta->node) return {meta->node, meta->output, nullptr};
    if (meta->requires_grad) return {nullptr, 0, meta};
    return {};
}

}  // namespace

bool grad_enabled() { return t_enabled; }
void set_grad_enabled(bool enabled) { t_enabled = enabled; }

Node::Node(std::string_view name, GradFunction f) : op(name), sequence(g_sequence++), function(std::move(f)) {}

Node::~Node() {
    std::vector<std::shared_ptr<Node>> mine;
    const bool outermost = t_dying == nullptr;
    if (outermost) t_dying = &mine;
    function = nullptr;
    for (Edge& edge : edges)
        if (edge.node) t_dying->push_back(std::move(edge.node));
    // A kept input holds its own node through its metadata.
    for (auto* list : {&inputs, &outputs})
        for (Saved& saved : *list)
            if (saved.tensor.defined() && saved.tensor.autograd() && saved.tensor.autograd()->node)
                t_dying->push_back(saved.tensor.autograd()->node);
    inputs.clear();
    outputs.clear();
    if (!outermost) return;
    while (!mine.empty()) {
        auto next = std::move(mine.back());
        mine.pop_back();
        next.reset();
    }
    t_dying = nullptr;
}

Tensor Backward::input(int i) const {
    check_kept(node_);
    const Saved& saved = node_.inputs[static_cast<std::size_t>(i)];
    check_unchanged(saved, node_, "input", i);
    return saved.tensor;
}

Tensor Backward::output(int i) const {
    check_kept(node_);
    const Saved& saved = node_.outputs[static_cast<std::size_t>(i)];
    check_unchanged(saved, node_, "output", i);
    // Kept without its history, which would be a cycle through this node; it is put back here.
    Tensor out = saved.tensor.view(saved.tensor.layout());
    auto meta = std::make_shared<AutogradMeta>();
    meta->node = node_.shared_from_this();
    meta->output = i;
    out.set_autograd(std::move(meta));
    return out;
}

bool tracks(Inputs inputs) {
    if (!t_enabled) return false;
    for (const TensorArg& input : inputs)
        if (input.tensor->defined() && input.tensor->requires_grad()) return true;
    return false;
}

void attach(std::string_view op, std::span<const Tensor> outputs, Inputs inputs, Keep keep, GradFunction function) {
    auto node = std::make_shared<Node>(op, std::move(function));
    node->view = keep.view;
    node->edges.reserve(inputs.size());
    for (const TensorArg& input : inputs) node->edges.push_back(edge_of(*input.tensor));
    node->inputs.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); i++)
        if (i < 32 && (keep.inputs >> i & 1)) node->inputs[i] = save(*inputs[i].tensor);
    node->outputs.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); i++) {
        const Tensor& out = outputs[i];
        if (!out.defined() || !is_floating(out.dtype())) {
            node->results.emplace_back();
            continue;
        }
        if (i < 32 && (keep.outputs >> i & 1)) node->outputs[i] = save(out.view(out.layout()));
        auto meta = std::make_shared<AutogradMeta>();
        meta->node = node;
        meta->output = static_cast<int>(i);
        node->results.push_back(meta);
        out.set_autograd(std::move(meta));
    }
}

void check_in_place(std::string_view op, const Tensor& target) {
    if (!t_enabled || !target.requires_grad()) return;
    check<Error>(!target.is_leaf(), op,
                 ": expected a tensor that does not require grad, got a leaf that does; use no_grad()");
    // A view of memory that nobody else holds is as good as its owner: x[mask] *= y.
    check<Error>(!target.autograd()->node->view || !target.storage() || target.storage()->use_count() == 1, op,
                 ": expected a tensor that owns its history, got a view of a recorded tensor; clone() it first, or "
                 "write x[i] = x[i] * y for x[i] *= y");
}

void check_in_place(std::string_view op, const Tensor& target, Inputs sources) {
    check_in_place(op, target);
    const TensorImpl& t = target.impl();
    if (!t.is_view || target.requires_grad() || t.storage->use_count() == 1 || !tracks(sources)) return;
    fail<Error>(
        op,
        ": expected a target that owns its memory when the source requires grad, got a view of a tensor whose history "
        "would not hear of it; index the tensor itself, as in x[0, 1] = y");
}

void wrote_in_place(const Tensor& target) {
    if (target.storage()) target.storage()->version++;
}

}  // namespace vkml
