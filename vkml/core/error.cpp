#include "vkml/core/error.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "vkml/core/shape.h"

namespace vkml::detail {

void append(std::string& out, std::string_view text) { out += text; }
void append(std::string& out, const char* text) { out += text; }
void append(std::string& out, const Dims& dims) { out += to_string(dims); }
void append(std::string& out, DType d) { out += name(d); }
void append(std::string& out, Device d) { out += to_string(d); }
void append(std::string& out, double value) { out += fmt::format("{}", value); }

void assert_failed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "vkml: %s:%d: broken invariant: %s\n", file, line, condition);
    std::abort();
}

}  // namespace vkml::detail
