#include "vkml/ops/reduce/reduce.h"
namespace vkml { Tensor sum_to(const Tensor& input, const Shape&) { return input; } }
