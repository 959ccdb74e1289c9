#pragma once
#include <string>
#include <vector>

#include "vkml/core/dtype.h"
#include "vkml/ops/matmul/gemm_choice.h"

/// What `python -m vkml tune` measured: a file per device beside the pipeline cache, read at the first product. A file
/// that is damaged or of another device or driver is ignored with a warning.
namespace vkml {

/// One winner: the pipeline that was fastest for products of about these extents.
struct TunedClass {
    DType dtype;
    std::string precision;
    std::int64_t m, n, k;
    std::string name;
};

/// Writes the device's file and returns its path. Throws Error where there is no folder for it.
std::string save_tuning(Device device, const std::vector<TunedClass>& winners);
/// The next product reads the files again.
void forget_tuning();

}  // namespace vkml
