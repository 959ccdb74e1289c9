#pragma once

/// The whole C++ library: tensors, devices, autograd, and every operator.
#include "vkml/autograd/engine.h"
#include "vkml/autograd/grad_mode.h"
#include "vkml/core/float16.h"
#include "vkml/core/tensor.h"
#include "vkml/operators.h"  // written by the build: vkml/ops/<op>/<op>.h of every folder
#include "vkml/ops/elementwise/operators.h"
#include "vkml/runtime/capture.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/registry.h"
