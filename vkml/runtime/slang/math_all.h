// All functions of f32, for V, I and M as defined by whoever includes this: see math_f32.h. C++ needs this order.
#include "math_float.h"

#include "math_f32.h"

#include "math_shared.h"

#include "math_common.h"

#include "math_activation.h"
