#include "bind.h"
#include "vkml/ops/elementwise/docs_py.h"
#include "vkml/ops/elementwise/elementwise.h"

namespace vkml::python {
namespace {

Arg arg(const Operand& o) { return o.is_tensor() ? Arg(o.tensor) : Arg(o.scalar); }

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Arg&, const Arg&);
using InPlace = const Tensor& (*)(const Tensor&, const Arg&);
using UnaryInPlace = const Tensor& (*)(const Tensor&);

void bind_unary(nb::module_& m, TensorClass& tensor, const char* name, Unary f) {
    m.def(name, f, nb::arg("input"), elementwise_doc(name), ReleaseGil());
    tensor.def(name, f, elementwise_doc(name), ReleaseGil());
}

/// The function and the method, and the operators: reflected too, where a number stands on the left.
void bind_binary(nb::module_& m, TensorClass& tensor, const char* name, Binary f, const char* symbol = nullptr,
                 const char* reflected = nullptr) {
    const auto call = [f](const Operand& a, const Operand& b) { return f(arg(a), arg(b)); };
    m.def(name, call, nb::arg("input"), nb::arg("other"), elementwise_doc(name), ReleaseGil());
    tensor.def(
        name, [f](const Tensor& a, const Operand& b) { return f(a, arg(b)); }, nb::arg("other"), elementwise_doc(name),
        ReleaseGil());
    if (symbol)
        tensor.def(
            symbol, [f](const Tensor& a, const Operand& b) { return f(a, arg(b)); }, nb::is_operator(), ReleaseGil());
    if (reflected)
        tensor.def(
            reflected, [f](const Tensor& a, const Operand& b) { return f(arg(b), a); }, nb::is_operator(),
            ReleaseGil());
}

/// Gives back the object it was called on.
void bind_in_place(TensorClass& tensor, const char* name, InPlace f, const char* symbol = nullptr) {
    const auto call = [f](nb::object self, const Operand& b) {
        const Tensor& target = nb::cast<const Tensor&>(self);
        {
            GilRelease unlocked;
            f(target, arg(b));
        }
        return self;
    };
    tensor.def(name, call, nb::arg("other"));
    if (symbol) tensor.def(symbol, call, nb::is_operator());
}

void bind_in_place(TensorClass& tensor, const char* name, UnaryInPlace f) {
    tensor.def(name, [f](nb::object self) {
        const Tensor& target = nb::cast<const Tensor&>(self);
        {
            GilRelease unlocked;
            f(target);
        }
        return self;
    });
}

void bind_unaries(nb::module_& m, TensorClass& tensor) {
    const std::pair<const char*, Unary> all[] = {{"neg", neg},
                                                 {"abs", abs},
                                                 {"sign", sign},
                                                 {"square", square},
                                                 {"reciprocal", reciprocal},
                                                 {"sqrt", sqrt},
                                                 {"rsqrt", rsqrt},
                                                 {"exp", exp},
                                                 {"exp2", exp2},
                                                 {"expm1", expm1},
                                                 {"log", log},
                                                 {"log2", log2},
                                                 {"log1p", log1p},
                                                 {"erf", erf},
                                                 {"erfc", erfc},
                                                 {"sin", sin},
                                                 {"cos", cos},
                                                 {"tan", tan},
                                                 {"tanh", tanh},
                                                 {"sigmoid", sigmoid},
                                                 {"relu", relu},
                                                 {"silu", silu},
                                                 {"softplus", softplus},
                                                 {"logsigmoid", logsigmoid},
                                                 {"mish", mish},
                                                 {"round", round},
                                                 {"floor", floor},
                                                 {"ceil", ceil},
                                                 {"trunc", trunc},
                                                 {"bitwise_not", bitwise_not},
                                                 {"logical_not", logical_not},
                                                 {"isnan", isnan},
                                                 {"isinf", isinf},
                                                 {"isfinite", isfinite}};
    for (const auto& [name, f] : all) bind_unary(m, tensor, name, f);
    tensor.def("__neg__", &neg, nb::is_operator(), ReleaseGil());
    tensor.def("__pos__", [](const Tensor& x) { return x; }, nb::is_operator());
    tensor.def("__abs__", &abs, nb::is_operator(), ReleaseGil());
    tensor.def("__invert__", &bitwise_not, nb::is_operator(), ReleaseGil());
    const auto gelu_ = [](const Tensor& x, const std::string& approximate) { return gelu(x, approximate); };
    m.def("gelu", gelu_, nb::arg("input"), nb::arg("approximate") = "none", elementwise_doc("gelu"), ReleaseGil());
    tensor.def("gelu", gelu_, nb::arg("approximate") = "none", elementwise_doc("gelu"), ReleaseGil());
    m.def("leaky_relu", &leaky_relu, nb::arg("input"), nb::arg("negative_slope") = 0.01, elementwise_doc("leaky_relu"),
          ReleaseGil());
    m.def("elu", &elu, nb::arg("input"), nb::arg("alpha") = 1.0, elementwise_doc("elu"), ReleaseGil());
    m.def("hardtanh", &hardtanh, nb::arg("input"), nb::arg("min_val") = -1.0, nb::arg("max_val") = 1.0,
          elementwise_doc("hardtanh"), ReleaseGil());
}

void bind_binaries(nb::module_& m, TensorClass& tensor) {
    bind_binary(m, tensor, "add", add, "__add__", "__radd__");
    bind_binary(m, tensor, "sub", sub, "__sub__", "__rsub__");
    bind_binary(m, tensor, "mul", mul, "__mul__", "__rmul__");
    bind_binary(m, tensor, "div", div, "__truediv__", "__rtruediv__");
    bind_binary(m, tensor, "pow", pow, "__pow__", "__rpow__");
    bind_binary(m, tensor, "floor_divide", floor_divide, "__floordiv__", "__rfloordiv__");
    bind_binary(m, tensor, "remainder", remainder, "__mod__", "__rmod__");
    bind_binary(m, tensor, "maximum", maximum);
    bind_binary(m, tensor, "minimum", minimum);
    bind_binary(m, tensor, "bitwise_and", bitwise_and, "__and__", "__rand__");
    bind_binary(m, tensor, "bitwise_or", bitwise_or, "__or__", "__ror__");
    bind_binary(m, tensor, "bitwise_xor", bitwise_xor, "__xor__", "__rxor__");
    bind_binary(m, tensor, "logical_and", logical_and);
    bind_binary(m, tensor, "logical_or", logical_or);
    bind_binary(m, tensor, "logical_xor", logical_xor);
    bind_binary(m, tensor, "equal", equal, "__eq__");
    bind_binary(m, tensor, "eq", equal);
    bind_binary(m, tensor, "not_equal", not_equal, "__ne__");
    bind_binary(m, tensor, "ne", not_equal);
    bind_binary(m, tensor, "less", less, "__lt__");
    bind_binary(m, tensor, "lt", less);
    bind_binary(m, tensor, "less_equal", less_equal, "__le__");
    bind_binary(m, tensor, "le", less_equal);
    bind_binary(m, tensor, "greater", greater, "__gt__");
    bind_binary(m, tensor, "gt", greater);
    bind_binary(m, tensor, "greater_equal", greater_equal, "__ge__");
    bind_binary(m, tensor, "ge", greater_equal);
    m.def("scaled_add", &scaled_add, nb::arg("a"), nb::arg("b"), nb::arg("alpha"), nb::arg("beta"),
          elementwise_doc("scaled_add"), ReleaseGil());
    // Python drops the inherited hash of a class that defines __eq__: identity it stays.
    tensor.attr("__hash__") = nb::module_::import_("builtins").attr("object").attr("__hash__");
}

void bind_in_places(TensorClass& tensor) {
    bind_in_place(tensor, "add_", add_, "__iadd__");
    bind_in_place(tensor, "sub_", sub_, "__isub__");
    bind_in_place(tensor, "mul_", mul_, "__imul__");
    bind_in_place(tensor, "div_", div_, "__itruediv__");
    bind_in_place(tensor, "pow_", pow_, "__ipow__");
    bind_in_place(tensor, "floor_divide_", floor_divide_, "__ifloordiv__");
    bind_in_place(tensor, "remainder_", remainder_, "__imod__");
    bind_in_place(tensor, "bitwise_and_", bitwise_and_, "__iand__");
    bind_in_place(tensor, "bitwise_or_", bitwise_or_, "__ior__");
    bind_in_place(tensor, "bitwise_xor_", bitwise_xor_, "__ixor__");
    const std::pair<const char*, UnaryInPlace> all[] = {{"neg_", neg_},
                                                        {"abs_", abs_},
                                                        {"exp_", exp_},
                                                        {"log_", log_},
                                                        {"sqrt_", sqrt_},
                                                        {"rsqrt_", rsqrt_},
                                                        {"reciprocal_", reciprocal_},
                                                        {"square_", square_},
                                                        {"relu_", relu_},
                                                        {"sigmoid_", sigmoid_},
                                                        {"tanh_", tanh_},
                                                        {"sin_", sin_},
                                                        {"cos_", cos_},
                                                        {"round_", round_},
                                                        {"floor_", floor_},
                                                        {"ceil_", ceil_},
                                                        {"trunc_", trunc_},
                                                        {"zero_", zero_}};
    for (const auto& [name, f] : all) bind_in_place(tensor, name, f);
    tensor.def(
        "fill_",
        [](nb::object self, const Scalar& value) {
            fill_(nb::cast<const Tensor&>(self), value);
            return self;
        },
        nb::arg("value"), nb::sig("def fill_(self, value: bool | int | float) -> Tensor"),
        "Overwrites every element. Returns the tensor.");
}

}  // namespace
}  // namespace vkml::python

VKML_PYTHON(elementwise) {
    using namespace vkml::python;
    bind_unaries(m, tensor);
    bind_binaries(m, tensor);
    bind_in_places(tensor);
}
