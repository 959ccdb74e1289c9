#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "vkml/core/device.h"
#include "vkml/core/dtype.h"

/// Two failure words: `check` for a user's mistake, VKML_ASSERT for a broken invariant.
/// Texts read `operator: expected <what>, got <what>`.
namespace vkml {

class Dims;

/// Base of every exception vkML throws.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// Rank, size, or any other illegal argument value.
struct ShapeError : Error {
    using Error::Error;
};
/// A dtype the operator does not take, or dtypes that must be equal.
struct DTypeError : Error {
    using Error::Error;
};
/// Axis or index out of range.
struct IndexError : Error {
    using Error::Error;
};
/// Tensors on different devices, or a device that is missing or lost.
struct DeviceError : Error {
    using Error::Error;
};
/// Right arguments, but no kernel on this device.
struct NotImplementedError : Error {
    using Error::Error;
};
/// Names the bytes asked for, the limit, and the limit's name.
struct OutOfMemoryError : Error {
    using Error::Error;
};

namespace detail {
void append(std::string& out, std::string_view text);
void append(std::string& out, const char* text);
void append(std::string& out, const Dims& dims);
void append(std::string& out, DType d);
void append(std::string& out, Device d);
void append(std::string& out, double value);
template <class Integer>
    requires std::is_integral_v<Integer>
void append(std::string& out, Integer value) {
    out += std::to_string(value);
}
[[noreturn]] void assert_failed(const char* condition, const char* file, int line);
}  // namespace detail

/// Joins its arguments into one text; shapes print as Python tuples, dtypes and devices by name.
template <class... Parts>
std::string concat(const Parts&... parts) {
    std::string out;
    (detail::append(out, parts), ...);
    return out;
}

template <class E, class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    throw E(concat(parts...));
}

template <class E = ShapeError, class... Parts>
void check(bool condition, const Parts&... parts) {
    if (!condition) [[unlikely]]
        fail<E>(parts...);
}

}  // namespace vkml

#ifdef NDEBUG
#define VKML_ASSERT(condition) static_cast<void>(0)
#else
#define VKML_ASSERT(condition) \
    ((condition) ? static_cast<void>(0) : ::vkml::detail::assert_failed(#condition, __FILE__, __LINE__))
#endif
