#include "vkml/runtime/vulkan/spirv.h"

#include <unordered_map>

namespace vkml::vulkan {

namespace {

constexpr std::size_t kHeaderWords = 5;

// Enumerants of the SPIR-V specification.
constexpr std::uint32_t kOpExecutionMode = 16, kOpCapability = 17, kOpConstant = 43, kOpSpecConstant = 50,
                        kOpDecorate = 71, kOpExecutionModeId = 331;
constexpr std::uint32_t kLocalSize = 17, kLocalSizeId = 38, kSpecId = 1;
constexpr std::uint32_t kOpTypeBool = 20, kOpTypeInt = 21, kOpTypeFloat = 22, kOpTypeVector = 23, kOpTypeArray = 28,
                        kOpTypeStruct = 30, kOpTypePointer = 32, kOpSpecConstantOp = 52, kOpVariable = 59;
constexpr std::uint32_t kIAdd = 128, kISub = 130, kIMul = 132, kUDiv = 134, kWorkgroup = 4;
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

/// Values of constants and sizes of types, by id, as the declarations go by.
class Sizes {
  public:
    explicit Sizes(const Spec& spec) : spec_(spec) {}

    std::uint64_t shared = 0;

    void see(std::uint32_t op, std::span<const std::uint32_t> w) {
        if (op == kOpDecorate && w[2] == kSpecId) spec_ids_[w[1]] = static_cast<int>(w[3]);
        if (op == kOpTypeBool) size_[w[1]] = 4;
        if (op == kOpTypeInt || op == kOpTypeFloat) size_[w[1]] = w[2] / 8;
        if (op == kOpTypeVector) size_[w[1]] = size_[w[2]] * w[3];
        if (op == kOpTypeArray) size_[w[1]] = size_[w[2]] * value_[w[3]];
        if (op == kOpTypeStruct)
            for (std::uint32_t member : w.subspan(2)) size_[w[1]] += size_[member];
        if (op == kOpTypePointer) {
            size_[w[1]] = 8;
            pointee_[w[1]] = w[3];
        }
        if (op == kOpConstant || op == kOpSpecConstant) value_[w[2]] = constant(w[2], w[3]);
        if (op == kOpSpecConstantOp && w.size() == 6) value_[w[2]] = compute(w[3], value_[w[4]], value_[w[5]]);
        if (op == kOpVariable && w[3] == kWorkgroup) shared += size_[pointee_[w[1]]];
    }

  private:
    std::uint64_t constant(std::uint32_t id, std::uint32_t written) const {
        const auto found = spec_ids_.find(id);
        return found != spec_ids_.end() && found->second < spec_.size() ? spec_[found->second] : written;
    }

    static std::uint64_t compute(std::uint32_t op, std::uint64_t a, std::uint64_t b) {
        if (op == kIAdd) return a + b;
        if (op == kISub) return a - b;
        if (op == kIMul) return a * b;
        return op == kUDiv && b ? a / b : 0;
    }

    const Spec& spec_;
    std::unordered_map<std::uint32_t, int> spec_ids_;
    std::unordered_map<std::uint32_t, std::uint64_t> size_, value_;
    std::unordered_map<std::uint32_t, std::uint32_t> pointee_;
};

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

std::uint64_t shared_bytes(std::span<const std::uint32_t> code, const Spec& spec) {
    Sizes sizes(spec);
    each_instruction(code, [&](std::uint32_t op, auto words) {
        sizes.see(op, words);
        return true;
    });
    return sizes.shared;
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
