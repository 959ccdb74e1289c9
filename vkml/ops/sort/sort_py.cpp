#include "bind.h"
#include "vkml/ops/sort/sort.h"
#include "vkml/ops/sort/unique.h"

VKML_PYTHON(sort) {
    using namespace vkml;
    using namespace vkml::python;
    const auto both = [](const Sorted& s) { return nb::make_tuple(s.values, s.indices); };
    const auto sort_ = [=](const Tensor& input, std::int64_t dim, bool descending) {
        return both(sort(input, dim, descending));
    };
    const auto topk_ = [=](const Tensor& input, std::int64_t k, std::int64_t dim, bool largest) {
        return both(topk(input, k, dim, largest));
    };
    m.def("sort", sort_, "input"_a, "dim"_a = -1, "descending"_a = false,
          R"((values, indices) in ascending order along dim; stable, NaN counts as the largest value.

Examples
--------
>>> vkml.sort(vkml.tensor([3., 1., 2.]), descending=True)
(tensor([3., 2., 1.]), tensor([0, 2, 1]))
)");
    m.def("argsort", &argsort, "input"_a, "dim"_a = -1, "descending"_a = false,
          R"(The indices that sort along dim; stable, NaN last.

Examples
--------
>>> vkml.argsort(vkml.tensor([3., 1., 2.]))
tensor([1, 2, 0])
)");
    m.def("topk", topk_, "input"_a, "k"_a, "dim"_a = -1, "largest"_a = true,
          R"((values, indices) of the k largest along dim in order; among equals the lower index comes first.

Examples
--------
>>> vkml.topk(vkml.tensor([3., 1., 2.]), 2)
(tensor([3., 2.]), tensor([0, 2]))
)");
    const auto unique_ = [](const Tensor& input, bool, bool inverse, bool counts) -> nb::object {
        const Unique u = unique(input);
        if (inverse && counts) return nb::make_tuple(u.values, u.inverse, u.counts);
        if (inverse) return nb::make_tuple(u.values, u.inverse);
        if (counts) return nb::make_tuple(u.values, u.counts);
        return nb::cast(u.values);
    };
    m.def("unique", unique_, "input"_a, "sorted"_a = true, "return_inverse"_a = false, "return_counts"_a = false,
          R"(The distinct elements in ascending order; on request which of them each element is, and how often
each occurs.

Examples
--------
>>> vkml.unique(vkml.tensor([3, 1, 3]))
tensor([1, 3])
>>> vkml.unique(vkml.tensor([3, 1, 3]), return_counts=True)
(tensor([1, 3]), tensor([1, 2]))
)");
    tensor.def("unique", unique_, "sorted"_a = true, "return_inverse"_a = false, "return_counts"_a = false);
    tensor.def("sort", sort_, "dim"_a = -1, "descending"_a = false)
        .def("argsort", &argsort, "dim"_a = -1, "descending"_a = false)
        .def("topk", topk_, "k"_a, "dim"_a = -1, "largest"_a = true);
}
