#include "vkml/runtime/slang/args.h"

namespace vkml {

/// input and dx are packed (positions outside, classes, positions inside); everything else has one value per position
/// or class.
struct NllArgs {
    VKML_PTR(T.Storage) input;  // log-probabilities, or logits
    VKML_PTR(T.Storage) dx;
    VKML_PTR(T.Value) values;  // the losses, or their gradients
    VKML_PTR(T.Value) kept;    // the weight of each target, 0 where it is ignored
    VKML_PTR(T.Value) weight;  // of each class, or null
    VKML_PTR(T.Value) peak;    // of a position's logits, and the log of their sum: see softmax_statistics(); or null
    VKML_PTR(T.Value) log_sum;
    VKML_PTR(int64_t) target;
    VKML_PTR(uint32_t) fault;
    int64_t ignore;
    uint64_t count;  // positions, or elements of dx
    uint32_t classes, inner, site;
    uint32_t multiplier, shift;  // division by classes
};

}  // namespace vkml
