#pragma once
#include "bind.h"
#include "vkml/core/int2.h"

namespace nanobind::detail {

/// Int2 from an int or a sequence of one or two ints; given back as a tuple. What is no list of integers is refused by
/// the reader of shapes, when the call is made.
template <>
struct type_caster<vkml::Int2> {
    static constexpr auto Name = const_name("int | collections.abc.Sequence[int]");
    using Value = vkml::Int2;
    template <typename T>
    using Cast = vkml::Int2;
    template <typename T>
    static constexpr bool can_cast() {
        return true;
    }

    bool from_python(handle src, std::uint32_t flags, cleanup_list* cleanup) noexcept {
        source = src;
        return dims.from_python(src, flags, cleanup);
    }
    static handle from_cpp(vkml::Int2 pair, rv_policy, cleanup_list*) noexcept {
        return make_tuple(pair.h, pair.w).release();
    }

    vkml::Int2& get() {
        const vkml::Dims& read = dims.get();
        if (read.size() != 1 && read.size() != 2) {
            vkml::python::refused_argument() = source.ptr();
            vkml::fail<vkml::ShapeError>("pair: expected one integer or a pair (height, width), got ", read);
        }
        value = vkml::Int2(read[0], read[read.size() - 1]);
        return value;
    }
    explicit operator vkml::Int2() { return get(); }
    explicit operator vkml::Int2*() { return &get(); }
    explicit operator vkml::Int2&() { return get(); }

  private:
    make_caster<vkml::Dims> dims;
    handle source;
    vkml::Int2 value{0};
};

}  // namespace nanobind::detail
