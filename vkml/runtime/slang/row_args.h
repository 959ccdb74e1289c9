#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Arguments of every row kernel (slang/rows.slang): rows of `cols` elements, read through strides, written packed.
/// A row's place in x comes from its index cut up by `sizes`; element e of it lies e * x_step further on. In `second`
/// and `y` element e lies e * inner further on: `inner` is the product of the extents behind the axis.
struct RowArgs {
    VKML_PTR(T.Storage) x;
    VKML_PTR(T.Storage) second;  // a second input of packed layout, or null
    VKML_PTR(T.Storage) y;
    VKML_PTR(T.Storage) weight;  // one per element of a row, of the input's dtype or float (spec), or null
    VKML_PTR(T.Storage) bias;    // the same
    VKML_PTR(T.Value) mean;      // one per row, kept for the gradient, or null
    VKML_PTR(T.Value) rstd;
    VKML_PTR(T.Value) scratch;  // states of parts of rows, three values each
    uint64_t rows;
    int64_t x_step;
    int64_t strides[3];  // of x along the row axes, outermost first
    uint32_t sizes[2];   // extents of all row axes but the outermost
    uint32_t cols;
    uint32_t inner;
    float eps_high, eps_low;  // eps is their sum
};

}  // namespace vkml
