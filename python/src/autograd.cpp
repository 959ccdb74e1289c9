#include <algorithm>
#include <mutex>

#include "module.h"
#include "vkml/autograd/engine.h"
#include "vkml/core/gradient_lock.h"

namespace vkml::python {
namespace {

/// `t.grad_fn`: the operator that made a tensor.
struct GradFn {
    std::shared_ptr<Node> node;
};

/// What register_hook returns.
struct HookHandle {
    std::weak_ptr<AutogradMeta> meta;
    int id;
};

nb::object tensor_or_none(const Tensor& t) { return t.defined() ? nb::cast(t) : nb::none(); }

void set_grad(const Tensor& t, const Tensor& g) {
    if (g.defined()) {
        check(g.shape() == t.shape(), "grad: expected shape ", t.shape(), ", got ", g.shape());
        check<DTypeError>(g.dtype() == t.dtype(), "grad: expected ", t.dtype(), ", got ", g.dtype());
        check<DeviceError>(g.device() == t.device(), "grad: expected a tensor on ", t.device(), ", got one on ",
                           g.device());
    }
    t.set_grad(g);
}

/// A tensor, or an undefined one for None.
Tensor gradient_from(nb::handle h, std::string_view op) {
    if (h.is_none()) return {};
    check<DTypeError>(nb::isinstance<Tensor>(h), op, ": expected a gradient that is a Tensor or None, got ",
                      nb::cast<std::string>(nb::repr(h.type())));
    return nb::cast<Tensor>(h);
}

/// Calls a Python hook from the engine, which runs without the GIL.
Tensor call_hook(const Held& hook, const Tensor& gradient) {
    nb::gil_scoped_acquire gil;
    const nb::object result = nb::handle(hook.get())(gradient);
    return gradient_from(result, "hook");
}

HookHandle add_hook(const Tensor& t, nb::callable hook) {
    check<Error>(t.requires_grad(), "register_hook: expected a tensor that requires grad, got one that does not");
    static int last = 0;  // a removed hook's handle never means a later one
    const auto call = [held = hold(hook)](const Tensor& g) { return call_hook(held, g); };
    std::lock_guard lock(gradient_lock());
    const int id = ++last;
    t.autograd()->hooks.emplace_back(id, call);
    return {t.autograd(), id};
}

std::vector<Tensor> defined_or_empty(const std::vector<std::optional<Tensor>>& gradients) {
    std::vector<Tensor> out;
    for (const auto& g : gradients) out.push_back(g.value_or(Tensor{}));
    return out;
}

/// What a gradient has to look like.
struct Like {
    Shape shape;
    DType dtype;
    Device device;
};

void check_gradient(const std::string& op, const Tensor& g, const Like& like) {
    if (!g.defined()) return;
    check(g.shape() == like.shape, op, ": backward: expected a gradient of shape ", like.shape, ", got ", g.shape());
    check<DTypeError>(g.dtype() == like.dtype, op, ": backward: expected a gradient of ", like.dtype, ", got ",
                      g.dtype());
    check<DeviceError>(g.device() == like.device, op, ": backward: expected a gradient on ", like.device,
                       ", got one on ", g.device());
}

/// autograd.Function: puts outputs that Python computed on the tape. `backward` takes a list of gradients (None where
/// there is none) and returns one gradient or None per input.
std::vector<Tensor> record_python(const std::string& op, std::vector<Tensor> outputs, const std::vector<Tensor>& inputs,
                                  nb::callable backward) {
    const std::size_t count = outputs.size(), wanted = inputs.size();
    std::vector<Like> like;
    for (const Tensor& t : inputs) like.push_back({t.shape(), t.dtype(), t.device()});
    std::vector<TensorArg> arguments(inputs.begin(), inputs.end());
    // An output that is an input, or a view of one, gets a history of its own.
    for (Tensor& t : outputs) t = t.view(t.layout());
    return record(op, std::move(outputs), arguments, keep_nothing,
                  [held = hold(backward), count, wanted, op, like](const Backward& b) -> Grads {
                      nb::gil_scoped_acquire gil;
                      nb::list gradients;
                      for (std::size_t i = 0; i < count; i++)
                          gradients.append(tensor_or_none(b.grad(static_cast<int>(i))));
                      const nb::object result = nb::handle(held.get())(gradients);
                      Grads out;
                      for (nb::handle g : result) out.push_back(gradient_from(g, op + ": backward"));
                      check(out.size() == wanted, op, ": backward: expected ", wanted, " gradients, got ", out.size());
                      for (std::size_t i = 0; i < wanted; i++) check_gradient(op, out[i], like[i]);
                      return out;
                  });
}

void bind_history(nb::module_& m, TensorClass& tensor) {
    nb::class_<GradFn>(m, "GradFn", "The operator that made a tensor, as `t.grad_fn` shows it.")
        .def("name", [](const GradFn& f) { return f.node->op; })
        .def_prop_ro(
            "next_functions",
            [](const GradFn& f) {
                std::vector<std::optional<GradFn>> out;
                for (const Edge& edge : f.node->edges)
                    out.push_back(edge.node ? std::optional<GradFn>(GradFn{edge.node}) : std::nullopt);
                return out;
            },
            "The operators that made its inputs; None for leaves.")
        .def("__repr__", [](const GradFn& f) { return "<" + f.node->op + ">"; });
    nb::class_<HookHandle>(m, "HookHandle", "Returned by register_hook.")
        .def(
            "remove",
            [](const HookHandle& h) {
                const auto meta = h.meta.lock();
                if (!meta) return;
                decltype(meta->hooks) removed;  // destroyed after the lock, for that may run Python code
                std::lock_guard lock(gradient_lock());
                const auto found = std::ranges::find(meta->hooks, h.id, [](const auto& hook) { return hook.first; });
                if (found == meta->hooks.end()) return;
                removed.push_back(std::move(*found));
                meta->hooks.erase(found);
            },
            "Takes the hook off again.")
        .def("__repr__", [](const HookHandle&) { return "<hook>"; });
    tensor
        .def_prop_rw("requires_grad", &Tensor::requires_grad,
                     [](const Tensor& t, bool wanted) { t.requires_grad_(wanted); })
        .def_prop_rw(
            "grad", [](const Tensor& t) { return tensor_or_none(t.grad()); },
            [](const Tensor& t, std::optional<Tensor> g) { set_grad(t, g.value_or(Tensor{})); },
            nb::for_setter(nb::arg("value").none()), nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
            nb::for_setter(nb::sig("def grad(self, value: Tensor | None) -> None")),
            "The gradient that backward() has added up; None before.")
        .def_prop_ro("is_leaf", &Tensor::is_leaf, "False for the result of a recorded operator.")
        .def_prop_ro("grad_fn",
                     [](const Tensor& t) {
                         return t.is_leaf() ? std::nullopt : std::optional<GradFn>(GradFn{t.autograd()->node});
                     })
        .def(
            "requires_grad_",
            [](nb::object self, bool wanted) {
                nb::cast<const Tensor&>(self).requires_grad_(wanted);
                return self;
            },
            "requires_grad"_a = true, nb::sig("def requires_grad_(self, requires_grad: bool = True) -> Tensor"),
            "Asks for this leaf's gradient. Returns the tensor.")
        .def(
            "retain_grad",
            [](const Tensor& t) {
                check<Error>(t.requires_grad(),
                             "retain_grad: expected a tensor that requires grad, got one that does not");
                t.autograd()->retains_grad = !t.is_leaf();
            },
            "Keeps the gradient of this intermediate tensor in `grad` at the next backward().")
        .def("register_hook", &add_hook, "hook"_a,
             "Calls hook(gradient) when the gradient is known; what it returns, unless None, replaces it.")
        .def("zero_grad", [](const Tensor& t) { t.set_grad({}); }, "Forgets the gradient.");
}

}  // namespace

void bind_autograd(nb::module_& m, TensorClass& tensor) {
    bind_history(m, tensor);
    m.def("is_grad_enabled", &grad_enabled, R"(True while operators on this thread are recorded.

Examples
--------
>>> with vkml.no_grad():
...     vkml.is_grad_enabled()
False
)");
    m.def("_set_grad_enabled", &set_grad_enabled);
    m.def("_record", &record_python);
    const auto run = [](const Tensor& t, const std::optional<Tensor>& gradient, bool retain_graph, bool create_graph) {
        backward(t, gradient.value_or(Tensor{}), {.retain_graph = retain_graph, .create_graph = create_graph});
    };
    tensor.def("backward", run, "gradient"_a = nb::none(), "retain_graph"_a = false, "create_graph"_a = false,
               ReleaseGil(),
               "Adds the gradient of this tensor to `grad` of every leaf it depends on. `gradient` weighs its elements "
               "and may be left out for one element.");
    m.def("backward", run, "t"_a, "gradient"_a = nb::none(), "retain_graph"_a = false, "create_graph"_a = false,
          ReleaseGil(), R"(As t.backward().

Examples
--------
>>> x = vkml.tensor([1., 2.], requires_grad=True)
>>> vkml.backward((x * x).sum())
>>> x.grad
tensor([2., 4.])
)");
    m.def("_grad", [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                      const std::vector<std::optional<Tensor>>& gradients, bool retain_graph, bool create_graph,
                      bool allow_unused) {
        std::vector<Tensor> out;
        {
            GilRelease release;
            out = grad(outputs, inputs, defined_or_empty(gradients),
                       {.retain_graph = retain_graph, .create_graph = create_graph, .allow_unused = allow_unused});
        }
        nb::list result;
        for (const Tensor& t : out) result.append(tensor_or_none(t));
        return result;
    });
}

}  // namespace vkml::python
