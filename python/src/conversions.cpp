#include <bit>

#include "module.h"
#include "vkml/autograd/node.h"
#include "vkml/core/float16.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml::python {
namespace {

template <class T>
T read_as(const std::byte* bytes) {
    T value;
    __builtin_memcpy(&value, bytes, sizeof(T));
    return value;
}

Scalar element(const Tensor& t, const char* what) {
    check<Error>(t.numel() == 1, what, ": expected a tensor of one element, got shape ", t.shape());
    std::byte bytes[8];
    {
        GilRelease release;
        to_host(t, bytes);
    }
    switch (t.dtype()) {
        case DType::boolean:
            return Scalar(bytes[0] != std::byte{0});
        case DType::u8:
            return Scalar(static_cast<std::int64_t>(read_as<std::uint8_t>(bytes)));
        case DType::i8:
            return Scalar(static_cast<std::int64_t>(read_as<std::int8_t>(bytes)));
        case DType::i16:
            return Scalar(static_cast<std::int64_t>(read_as<std::int16_t>(bytes)));
        case DType::i32:
            return Scalar(static_cast<std::int64_t>(read_as<std::int32_t>(bytes)));
        case DType::i64:
            return Scalar(read_as<std::int64_t>(bytes));
        case DType::f16:
            return Scalar(static_cast<double>(float_from_f16(read_as<std::uint16_t>(bytes))));
        case DType::bf16:
            return Scalar(static_cast<double>(float_from_bf16(read_as<std::uint16_t>(bytes))));
        case DType::f32:
            return Scalar(static_cast<double>(read_as<float>(bytes)));
        default:
            return Scalar(read_as<double>(bytes));
    }
}

/// A write that the tape does not see would leave the old history on the new values. Under no_grad that is what is
/// asked for.
void forget_history(const Tensor& t) {
    if (grad_enabled() && !t.is_leaf()) t.set_autograd(nullptr);
}

/// `source` already has the target's dtype and device.
void copy_in_place(const Tensor& target, const Tensor& source) {
    const TensorArg inputs[] = {source};
    check_in_place("copy_", target, inputs);
    const bool recorded = tracks(inputs);
    const Tensor from = source.shape() == target.shape() ? source : expand(source, target.shape());
    copy_into(target, from);
    forget_history(target);
    if (recorded)
        attach("copy_", {&target, 1}, std::initializer_list<TensorArg>{from}, keep_nothing,
               [](const Backward& b) -> Grads { return {b.grad()}; });
}

void check_assignable(const Tensor& target, const Tensor& source) {
    check(target.shape() == source.shape(), "assign: expected shape ", target.shape(), ", got ", source.shape());
    check<DTypeError>(target.dtype() == source.dtype(), "assign: expected ", target.dtype(), ", got ", source.dtype());
    common_device("assign", {&target, &source});
    check<Error>(!may_self_overlap(target.layout()),
                 "assign: expected a target whose elements are distinct, got an expanded one");
}

}  // namespace

void bind_conversions(nb::module_& m, TensorClass& tensor) {
    tensor
        .def(
            "item", [](const Tensor& t) { return element(t, "item"); },
            "The one element as a Python number; waits for the device.")
        .def("__bool__",
             [](const Tensor& t) {
                 const Scalar s = element(t, "bool");
                 return s.kind == Scalar::Kind::floating ? s.floating != 0 : s.integer != 0;
             })
        .def("__float__", [](const Tensor& t) { return element(t, "float").floating; })
        .def("__int__", [](const Tensor& t) { return nb::int_(nb::cast(element(t, "int"))); })
        .def("__index__", [](const Tensor& t) {
            check<DTypeError>(is_integer(t.dtype()) && t.numel() == 1, "index: expected one integer, got ", t.dtype(),
                              " of shape ", t.shape());
            return element(t, "index").integer;
        });
    m.def("_empty", &empty, "shape"_a, "dtype"_a, "device"_a);
    tensor.def(
        "realize",
        [](nb::object self) {
            stream_of(nb::cast<const Tensor&>(self)).submit();
            return self;
        },
        nb::sig("def realize(self) -> Tensor"), "Starts the device on what was recorded. Returns the tensor.");
    // Module.to: the object that an optimizer holds goes on meaning the parameter.
    m.def("_rebind", [](nb::handle object, const Tensor& value) {
        Tensor& target = nb::cast<Tensor&>(object);
        target = Tensor(value.storage(), value.layout(), value.dtype(), value.device());
    });
    m.def("_cast", &cast, "input"_a, "dtype"_a, ReleaseGil());
    m.def("_to_device", &to_device, "input"_a, "device"_a, ReleaseGil());
    tensor.def("_copy_", &copy_in_place, "source"_a, ReleaseGil())
        .def("copy_", in_python("copy_"), nb::sig("def copy_(self, source: typing.Any) -> Tensor"),
             "Writes `source`, broadcast and converted, into the tensor. Returns the tensor.")
        .def(
            "assign_",
            [](nb::object self, const Tensor& source) {
                const Tensor& target = nb::cast<const Tensor&>(self);
                check_assignable(target, source);
                copy_into(target, source);
                return self;
            },
            "source"_a, nb::sig("def assign_(self, source: Tensor) -> Tensor"),
            "Replaces the values by those of a tensor of the same shape, dtype and device; not recorded by autograd, "
            "so it also takes parameters.");
    m.def(
        "assign",
        [](const std::vector<Tensor>& targets, const std::vector<Tensor>& sources) {
            check(targets.size() == sources.size(), "assign: expected ", targets.size(), " sources, got ",
                  sources.size());
            for (std::size_t i = 0; i < targets.size(); i++) check_assignable(targets[i], sources[i]);
            for (std::size_t i = 0; i < targets.size(); i++) copy_into(targets[i], sources[i]);
        },
        "targets"_a, "sources"_a, ReleaseGil(),
        R"(Replaces the values of several tensors; everything is checked before anything is written.

Examples
--------
>>> x = vkml.zeros(2)
>>> vkml.assign([x], [vkml.ones(2)])
>>> x
tensor([1., 1.])
)");
}

}  // namespace vkml::python
