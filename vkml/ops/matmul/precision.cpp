#include "vkml/ops/matmul/precision.h"

#include <atomic>

#include "vkml/core/error.h"
#include "vkml/runtime/configuration.h"

namespace vkml {
namespace {

constexpr std::string_view kWords[] = {"exact", "highest", "high", "medium"};

Precision parse(std::string_view who, std::string_view word) {
    if (const auto named = precision_named(word)) return *named;
    fail<ShapeError>(who, ": expected exact, highest, high or medium, got '", word, "'");
}

std::atomic<Precision>& mode() {
    static std::atomic<Precision> value = [] {
        const std::string_view word = setting("VKML_MATMUL_PRECISION");
        return word.empty() ? Precision::highest : parse("VKML_MATMUL_PRECISION", word);
    }();
    return value;
}

}  // namespace

Precision float32_matmul_precision() { return mode().load(std::memory_order_relaxed); }

std::optional<Precision> precision_named(std::string_view word) {
    for (int i = 0; i < 4; i++)
        if (word == kWords[i]) return static_cast<Precision>(i);
    return std::nullopt;
}

std::string_view float32_matmul_precision_name() { return kWords[static_cast<int>(float32_matmul_precision())]; }

void set_float32_matmul_precision(std::string_view word) {
    mode().store(parse("set_float32_matmul_precision", word), std::memory_order_relaxed);
}

}  // namespace vkml
