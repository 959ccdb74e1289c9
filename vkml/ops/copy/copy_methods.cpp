#include <cstring>

#include "vkml/core/float16.h"
#include "vkml/ops/copy/copy.h"

namespace vkml {
namespace {

template <class T>
double value_of(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return static_cast<double>(value);
}

template <class T>
constexpr bool holds(DType dtype) {
    if constexpr (std::is_same_v<T, double>) return dtype == DType::f64;
    if constexpr (std::is_same_v<T, float>) return dtype == DType::f32;
    if constexpr (std::is_same_v<T, std::int64_t>) return dtype == DType::i64;
    if constexpr (std::is_same_v<T, std::int32_t>) return dtype == DType::i32;
    if constexpr (std::is_same_v<T, std::int16_t>) return dtype == DType::i16;
    if constexpr (std::is_same_v<T, std::uint16_t>) return dtype == DType::f16 || dtype == DType::bf16;
    if constexpr (std::is_same_v<T, std::int8_t>) return dtype == DType::i8;
    if constexpr (std::is_same_v<T, std::uint8_t>) return dtype == DType::u8 || dtype == DType::boolean;
}

}  // namespace

Tensor Tensor::contiguous() const { return vkml::contiguous(*this); }
Tensor Tensor::clone() const { return vkml::clone(*this); }
Tensor Tensor::to(Device device) const { return vkml::to_device(*this, device); }

double Tensor::item() const {
    check<Error>(numel() == 1, "item: expected one element, got shape ", shape());
    std::byte bytes[8];
    to_host(*this, bytes);
    switch (dtype()) {
        case DType::f64:
            return value_of<double>(bytes);
        case DType::f32:
            return value_of<float>(bytes);
        case DType::i64:
            return value_of<std::int64_t>(bytes);
        case DType::i32:
            return value_of<std::int32_t>(bytes);
        case DType::i16:
            return value_of<std::int16_t>(bytes);
        case DType::i8:
            return value_of<std::int8_t>(bytes);
        case DType::f16:
            return float_from_f16(static_cast<std::uint16_t>(value_of<std::uint16_t>(bytes)));
        case DType::bf16:
            return float_from_bf16(static_cast<std::uint16_t>(value_of<std::uint16_t>(bytes)));
        default:
            return value_of<std::uint8_t>(bytes);
    }
}

template <class T>
std::vector<T> Tensor::to_vector() const {
    check<DTypeError>(holds<T>(dtype()), "to_vector: expected the element type of ", dtype(), ", got another type of ",
                      sizeof(T), " bytes");
    std::vector<T> out(static_cast<std::size_t>(numel()));
    to_host(*this, out.data());
    return out;
}

template std::vector<double> Tensor::to_vector() const;
template std::vector<float> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;
template std::vector<std::int32_t> Tensor::to_vector() const;
template std::vector<std::int16_t> Tensor::to_vector() const;
template std::vector<std::uint16_t> Tensor::to_vector() const;
template std::vector<std::int8_t> Tensor::to_vector() const;
template std::vector<std::uint8_t> Tensor::to_vector() const;

}  // namespace vkml
