#include "int2_caster.h"
#include "vkml/ops/im2col/im2col.h"

VKML_PYTHON(im2col) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "im2col",
        [](const Tensor& input, Int2 kernel, Int2 stride, Int2 padding, Int2 dilation) {
            return im2col(input, {kernel, stride, padding, dilation});
        },
        "input"_a, "kernel"_a, "stride"_a = Int2(1), "padding"_a = Int2(0), "dilation"_a = Int2(1), ReleaseGil(),
        R"(Windows of an image as the columns of a matrix per sample.

Examples
--------
>>> vkml.im2col(vkml.arange(9.0).reshape(1, 1, 3, 3), 2)
tensor([[[0., 1., 3., 4.],
         [1., 2., 4., 5.],
         [3., 4., 6., 7.],
         [4., 5., 7., 8.]]])
)");
    m.def(
        "col2im",
        [](const Tensor& cols, Int2 image, Int2 kernel, Int2 stride, Int2 padding, Int2 dilation) {
            return col2im(cols, image, {kernel, stride, padding, dilation});
        },
        "cols"_a, "image"_a, "kernel"_a, "stride"_a = Int2(1), "padding"_a = Int2(0), "dilation"_a = Int2(1),
        ReleaseGil(), R"(Adds the columns of im2col back into an image.

Examples
--------
>>> columns = vkml.im2col(vkml.arange(9.0).reshape(1, 1, 3, 3), 2)
>>> vkml.col2im(columns, 3, 2)
tensor([[[[ 0.,  2.,  2.],
          [ 6., 16., 10.],
          [ 6., 14.,  8.]]]])
)");
}
