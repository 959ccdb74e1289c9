#include "vkml/runtime/slang/args.h"

namespace vkml {

/// One step, forward. `rows` sequences of `width` units; *_row is the distance of two sequences in elements.
struct RecurrentArgs {
    VKML_PTR(T.Storage) gates;     // of the input, G width per row
    VKML_PTR(T.Storage) product;   // of the hidden state, G width per row, packed
    VKML_PTR(T.Storage) previous;  // lstm: cell state, gru: hidden state before the step
    VKML_PTR(T.Storage) hidden;    // after it
    VKML_PTR(T.Storage) cell;      // after it; lstm only
    uint32_t rows, width;
    uint32_t gates_row, previous_row, state_row;
};

/// One step, backward: gates and product as forward, but product has gates_row too.
struct RecurrentBackwardArgs {
    VKML_PTR(T.Storage) gates;
    VKML_PTR(T.Storage) product;
    VKML_PTR(T.Storage) previous;
    VKML_PTR(T.Storage) grad_hidden;  // of the step's results; either may be null
    VKML_PTR(T.Storage) grad_cell;
    VKML_PTR(T.Storage) later;         // through the next step's product, packed; null at the last step
    VKML_PTR(T.Storage) carry;         // in and out, packed: lstm: gradient of the cell state, gru: of the hidden state
    VKML_PTR(T.Storage) grad_gates;    // gates_row
    VKML_PTR(T.Storage) grad_product;  // gru: gates_row
    uint32_t rows, width;
    uint32_t gates_row, previous_row, state_row;
};

}  // namespace vkml
