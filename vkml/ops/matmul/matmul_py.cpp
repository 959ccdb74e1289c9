#include "bind.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/ops/matmul/gemm_tuned.h"
#include "vkml/ops/matmul/matmul.h"
#include "vkml/ops/matmul/precision.h"

VKML_PYTHON(matmul) {
    using namespace vkml;
    using namespace vkml::python;
    m.def("matmul", &matmul, "input"_a, "other"_a, ReleaseGil(),
          R"(Matrix product; leading axes are batch axes and broadcast.

Examples
--------
>>> vkml.matmul(vkml.tensor([[1., 2.], [3., 4.]]), vkml.tensor([1., 10.]))
tensor([21., 43.])
>>> vkml.matmul(vkml.ones(2, 1, 3, 4), vkml.ones(5, 4, 6)).shape
(2, 5, 3, 6)
)");
    m.def("mm", &matmul, "input"_a, "other"_a, ReleaseGil(), R"(Matrix product.

Examples
--------
>>> vkml.mm(vkml.tensor([[1., 2.]]), vkml.tensor([[3.], [4.]]))
tensor([[11.]])
)");
    m.def("mv", &matmul, "input"_a, "vec"_a, ReleaseGil(), R"(Matrix times vector.

Examples
--------
>>> vkml.mv(vkml.tensor([[1., 2.], [3., 4.]]), vkml.tensor([1., 10.]))
tensor([21., 43.])
)");
    tensor.def("matmul", &matmul, "other"_a, ReleaseGil());
    tensor.def("mm", &matmul, "other"_a, ReleaseGil());
    tensor.def("mv", &matmul, "vec"_a, ReleaseGil());
    tensor.def("__matmul__", &matmul, nb::is_operator(), ReleaseGil());
    m.def(
        "get_float32_matmul_precision", [] { return std::string(float32_matmul_precision_name()); },
        R"(How products are summed: exact, highest, high or medium.

Examples
--------
>>> vkml.get_float32_matmul_precision()
'highest'
)");
    m.def(
        "set_float32_matmul_precision", [](const std::string& word) { set_float32_matmul_precision(word); },
        "precision"_a, R"(Sets how products are summed: exact, highest, high or medium.

exact: blocks of 32 in a pairwise tree without FMA, the same bits on every device. highest, the default: float32 FMA in a
fixed order, or on GPUs whose matrix units are fast enough for it, large products from three bfloat16 parts of each
operand, all 24 bits (VKML_GEMM_PARTS=OFF in the environment keeps FMAs). high: float32 as two float16 halves, with
errors like those of FMAs; highest where there are no cooperative matrices. medium: operands rounded to bfloat16.

Examples
--------
>>> vkml.set_float32_matmul_precision("exact")
>>> vkml.get_float32_matmul_precision()
'exact'
>>> vkml.set_float32_matmul_precision("highest")
)");
    m.def(
        "_force_gemm", [](const std::string& name) { force_gemm(name); }, "name"_a = "",
        "For tests: the GPU pipeline of every product from now on; empty for the usual choice.");
    m.def(
        "_save_gemm_tuning",
        [](Device device,
           const std::vector<std::tuple<DType, std::string, std::int64_t, std::int64_t, std::int64_t, std::string>>&
               winners) {
            std::vector<TunedClass> classes;
            for (const auto& [dtype, precision, rows, columns, depth, name] : winners)
                classes.push_back({dtype, precision, rows, columns, depth, name});
            return save_tuning(device, classes);
        },
        "device"_a, "winners"_a,
        "Writes the file of a device: (dtype, precision, m, n, k, pipeline) for each class of shapes. Returns its "
        "path.");
    m.def("_forget_gemm_tuning", &forget_tuning, "The next product reads the tuning files again.");
    m.def("_gemm_names", [] {
        std::vector<std::string> names;
        for (const std::string_view name : gemm_names()) names.emplace_back(name);
        return names;
    });
}
