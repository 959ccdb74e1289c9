#pragma once
#include "vkml/core/tensor.h"

/// Stable sorting of key and value pairs, the machinery behind sort and the deterministic scatters.
namespace vkml {

struct KeyedPairs {
    Tensor keys;    // int32 or int64 storage, read as unsigned; packed
    Tensor values;  // int32 storage, read as unsigned; packed
};

/// The pairs in ascending order of bits [begin, end) of their keys; equal ones keep their order. Least significant
/// digit first: linear in the count. May overwrite `pairs`. Throws ShapeError from 2^31 pairs on.
KeyedPairs sort_pairs(const KeyedPairs& pairs, int begin, int end);

}  // namespace vkml
