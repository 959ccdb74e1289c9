#pragma once

/// The whole C++ library: tensors, devices, autograd, and every operator.
#include "vkml/autograd/engine.h"
#include "vkml/autograd/grad_mode.h"
#include "vkml/core/tensor.h"
#include "vkml/operators.h"  // written by the build: the header of every folder in vkml/ops
#include "vkml/runtime/capture.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/registry.h"
