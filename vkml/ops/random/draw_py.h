#pragma once
#include "bind.h"
#include "vkml/core/random.h"

/// Python integers as seeds and offsets.
namespace vkml::python {

using Seed = std::optional<nb::int_>;

/// Any Python integer modulo 2^64.
inline std::uint64_t word(const nb::int_& value) {
    const unsigned long long bits = PyLong_AsUnsignedLongLongMask(value.ptr());
    if (PyErr_Occurred()) nb::raise_python_error();
    return bits;
}

/// (seed, offset); without a seed the default generator's next draw, whose offset it chooses itself.
inline Draw draw_of(const Seed& seed, const nb::int_& offset) {
    return seed ? Draw{word(*seed), word(offset)} : next_draw();
}

}  // namespace vkml::python
