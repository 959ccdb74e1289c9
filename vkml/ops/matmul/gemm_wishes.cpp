#include <atomic>
#include <charconv>

#include "vkml/core/error.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/ops/matmul/gemm_choice.h"
#include "vkml/runtime/configuration.h"

/// Pipelines asked for by name: by the environment, and by tests.
namespace vkml {
namespace {

constexpr std::uint32_t kMostParts = 128;

constexpr std::string_view kNames[kPipelines] = {"gemv",
                                                 "gemv_columns",
                                                 "gemm_naive",
                                                 "gemm_tiled",
                                                 "gemm_db",
                                                 "gemm_reg",
                                                 "gemm_split_k",
                                                 "gemm_large",
                                                 "gemm_medium",
                                                 "gemm_small",
                                                 "gemm_split_k_large",
                                                 "gemm_split_k_medium",
                                                 "gemm_split_k_small",
                                                 "gemm_coopmat",
                                                 "gemm_coopmat_large",
                                                 "gemm_coopmat_wide",
                                                 "gemm_coopmat_small",
                                                 "gemm_split_k_coopmat",
                                                 "gemm_split_k_coopmat_small",
                                                 "gemm_high",
                                                 "gemm_high_small",
                                                 "gemm_parts",
                                                 "gemm_parts_small",
                                                 "gemm_parts_tiny",
                                                 "gemm_parts_few"};

/// "gemm_" may be left out. -1: no such name.
int find_pipeline(std::string_view name) {
    if (name == "gemm_split_k_reduce") name = "gemm_split_k";
    for (int i = 0; i < kPipelines; i++)
        if (kNames[i] == name || kNames[i] == "gemm_" + std::string(name)) return i;
    return -1;
}

enum class Mode : std::uint8_t { automatic, off, forced };

Mode read_mode(std::string_view name) {
    const std::string_view value = setting(name);
    if (value.empty() || value == "AUTO") return Mode::automatic;
    if (value == "OFF") return Mode::off;
    if (value == "FORCED") return Mode::forced;
    fail<ShapeError>(name, ": expected AUTO, OFF or FORCED, got ", value);
}

/// The environment's wishes, read once.
struct Wishes {
    Mode gemv = read_mode("VKML_GEMV"), split = read_mode("VKML_GEMM_SPLITK"), parts = read_mode("VKML_GEMM_PARTS");
    int kernel = -1;
    bool db = setting_on("VKML_GEMM_DB");
    std::uint32_t splits = 4;

    Wishes() {
        const std::string_view name = setting("VKML_GEMM_KERNEL");
        kernel = find_pipeline(name);
        check(name.empty() || kernel >= 0, "VKML_GEMM_KERNEL: expected naive, tiled, reg or another pipeline, got ",
              name);
        const std::string_view text = setting("VKML_GEMM_SPLITK_SPLITS");
        if (text.empty()) return;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), splits);
        check(read.ec == std::errc{} && read.ptr == text.data() + text.size() && splits >= 1 && splits <= kMostParts,
              "VKML_GEMM_SPLITK_SPLITS: expected 1 to ", kMostParts, ", got ", text);
    }
};

const Wishes& wishes() {
    static const Wishes read;
    return read;
}

std::atomic<int> forced_index{-1};

}  // namespace

std::string_view pipeline_name(Pipeline pipeline) { return kNames[static_cast<int>(pipeline)]; }

int forced_pipeline() {
    const int index = forced_index.load(std::memory_order_relaxed);
    if (index >= 0) return index;
    const Wishes& w = wishes();
    if (w.gemv == Mode::forced) return static_cast<int>(Pipeline::gemv);
    if (w.db) return static_cast<int>(Pipeline::db);
    if (w.split == Mode::forced && (w.kernel < 0 || w.kernel == static_cast<int>(Pipeline::reg)))
        return static_cast<int>(Pipeline::split_k);
    return w.kernel;
}

bool is_forced_for_tests() { return forced_index.load(std::memory_order_relaxed) >= 0; }
bool gemv_is_off() { return wishes().gemv == Mode::off; }
bool split_k_is_off() { return wishes().split == Mode::off; }
bool parts_are_forced() { return wishes().parts == Mode::forced; }
bool parts_are_off() { return wishes().parts == Mode::off; }
std::uint32_t forced_splits() { return wishes().splits; }

void force_gemm(std::string_view name) {
    const int index = name.empty() ? -1 : find_pipeline(name);
    check(name.empty() || index >= 0, "force_gemm: expected the name of a pipeline, got ", name);
    forced_index.store(index, std::memory_order_relaxed);
}

std::vector<std::string_view> gemm_names() { return {std::begin(kNames), std::end(kNames)}; }

}  // namespace vkml
