#include "vkml/autograd/arithmetic.h"
namespace vkml { Tensor add(const Tensor& a, const Tensor&) { return a; } }
