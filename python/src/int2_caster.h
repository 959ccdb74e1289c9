#pragma once
#include "bind.h"
#include "vkml/core/int2.h"

namespace nanobind::detail {

/// Int2 from an int or a sequence of two ints; given back as a tuple.
template <>
struct type_caster<vkml::Int2> {
    static constexpr auto Name = const_name("int | collections.abc.Sequence[int]");
    using Value = vkml::Int2;
    template <typename T>
    using Cast = vkml::Int2;

<<<<<<< HEAD
    bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
        vkml::Dims read;
        if (!try_cast<vkml::Dims>(src, read)) return false;
=======
    bool from_python(handle src, uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<vkml::Dims> dims;
        if (!dims.from_python(src, flags, cleanup)) return false;
        const vkml::Dims& read = dims.value;
>>>>>>> main
        if (read.size() != 1 && read.size() != 2) return false;
        value = vkml::Int2(read[0], read[read.size() - 1]);
        return true;
    }
    static handle from_cpp(vkml::Int2 pair, rv_policy, cleanup_list*) noexcept { return make_tuple(pair.h, pair.w).release(); }
    template <typename T>
    bool can_cast() const noexcept {
        return true;
    }
    explicit operator vkml::Int2() { return value; }
    explicit operator vkml::Int2*() { return &value; }
    explicit operator vkml::Int2&() { return value; }

    vkml::Int2 value{0};
};

}  // namespace nanobind::detail
