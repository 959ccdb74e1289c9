#pragma once
#include <string_view>

#include "vkml/core/tensor.h"

/// Recurrent layers over a whole sequence: what nn.LSTM, nn.GRU and nn.RNN run once per layer and direction.
namespace vkml {

/// What a step does with its gates; the numbers are the kernel's. Gates lie as in PyTorch: input, forget, cell, output
/// for lstm; reset, update, new for gru; one for the other two.
enum class RecurrentCell : std::uint8_t { lstm, gru, tanh, relu };
/// "lstm", "gru", "tanh" or "relu"; anything else is a ShapeError.
RecurrentCell parse_recurrent_cell(std::string_view word);

/// The hidden states, and for lstm the cell states, after every step: (N, T, H).
struct Recurrence {
    Tensor hidden, cell;
};

/// gates (N, T, G H): x W_ih^T with its bias, for all steps at once, G = 4, 3 or 1. weight (G H, H) multiplies the
/// hidden state, bias (G H) joins that product (gru needs it apart). hidden and cell (N, H): the state before the first
/// step, cell for lstm only. reverse goes from the last step to the first. Floats of one dtype. A step is one product
/// and one dispatch. Throws ShapeError, DTypeError.
Recurrence recurrent(RecurrentCell kind, const Tensor& gates, const Tensor& weight, const Tensor& bias,
                     const Tensor& hidden, const Tensor& cell = {}, bool reverse = false);

}  // namespace vkml
