#include "vkml/runtime/vulkan/spirv.h"

namespace vkml::vulkan {

namespace {

constexpr std::size_t kHeaderWords = 5;

// Enumerants of the SPIR-V specification.
constexpr std::uint32_t kOpExecutionMode = 16, kOpCapability = 17, kOpConstant = 43, kOpSpecConstant = 50,
                        kOpDecorate = 71, kOpExecutionModeId = 331;
constexpr std::uint32_t kLocalSize = 17, kLocalSizeId = 38, kSpecId = 1;
constexpr std::uint32_t kCapabilityDenormPreserve = 4464, kModeDenormPreserve = 4459;

/// Calls visit(opcode, words of the instruction) until it returns false.
template <class Visit>
void each_instruction(std::span<const std::uint32_t> code, Visit visit) {
    for (std::size_t at = kHeaderWords; at < code.size();) {
        const std::size_t length = code[at] >> 16;
        if (length == 0 || at + length > code.size() || !visit(code[at] & 0xffff, code.subspan(at, length))) return;
        at += length;
    }
}

}  // namespace

std::int64_t refused_capability(std::span<const std::uint32_t> code,
                                const std::function<bool(std::uint32_t)>& allowed) {
    std::int64_t refused = -1;
    each_instruction(code, [&](std::uint32_t op, auto words) {
        if (op != kOpCapability) return false;  // they come first
        if (!allowed(words[1])) refused = words[1];
        return refused < 0;
    });
    return refused;
}

std::uint32_t local_size_x(std::span<const std::uint32_t> code, const Spec& spec) {
    std::uint32_t size = 0, id = 0, value = 0;
    std::int64_t spec_id = -1;
    each_instruction(code, [&](std::uint32_t op, auto words) {
        if (op == kOpExecutionMode && words[2] == kLocalSize) size = words[3];
        if (op == kOpExecutionModeId && words[2] == kLocalSizeId) id = words[3];
        if (op == kOpDecorate && id && words[1] == id && words[2] == kSpecId) spec_id = words[3];
        if ((op == kOpConstant || op == kOpSpecConstant) && id && words[2] == id) value = words[3];
        return size == 0 && value == 0;
    });
    if (size) return size;
    return spec_id >= 0 && spec_id < spec.size() ? spec[static_cast<int>(spec_id)] : value;
}

std::vector<std::uint32_t> without_denorm_preserve(std::span<const std::uint32_t> code) {
    std::vector<std::uint32_t> kept(code.begin(), code.begin() + kHeaderWords);
    each_instruction(code, [&](std::uint32_t op, auto words) {
        const bool dropped = (op == kOpCapability && words[1] == kCapabilityDenormPreserve) ||
                             (op == kOpExecutionMode && words[2] == kModeDenormPreserve);
        if (!dropped) kept.insert(kept.end(), words.begin(), words.end());
        return true;
    });
    return kept;
}

}  // namespace vkml::vulkan
