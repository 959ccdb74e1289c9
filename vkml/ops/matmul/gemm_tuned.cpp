#include "vkml/ops/matmul/gemm_tuned.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <tuple>

#include "vkml/core/error.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/runtime/device_file.h"
#include "vkml/runtime/log.h"

namespace vkml {
namespace {

constexpr std::string_view kFormat = "vkml-tune-1";

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// Powers of two that M, N and K are nearest to: shapes of one class share a winner.
using Class = std::tuple<DType, Precision, int, int, int>;

int nearest_power(std::int64_t extent) {
    return static_cast<int>(std::lround(std::log2(static_cast<double>(std::max<std::int64_t>(extent, 1)))));
}

Class class_of(const GemmProblem& p) {
    return {p.dtype, p.precision, nearest_power(p.m * p.batch), nearest_power(p.n), nearest_power(p.k)};
}

using Winners = std::map<Class, int>;

/// The file beside the pipeline cache, and the line in it that names the device and its driver.
struct Place {
    std::filesystem::path file;
    std::string owner;
};

Place place_of(Device device) {
    const DeviceFiles kept = device_files(device);
    return {kept.file(".tune"), "device " + kept.uuid + " " + kept.driver};
}

Winners read_winners(Device device) {
    const Place place = place_of(device);
    std::ifstream in(place.file);
    if (place.file.empty() || !in) return {};
    const auto ignore = [&](std::string_view why) -> Winners {
        log(LogLevel::warn, concat("tuning file ", place.file.string(), " ignored: ", why));
        return {};
    };
    std::string line;
    if (!std::getline(in, line) || line != kFormat) return ignore("it is not a tuning file of this version");
    if (!std::getline(in, line) || line != place.owner) return ignore("it is of another device or driver");
    const std::vector<std::string_view> names = gemm_names();
    Winners winners;
    bool ended = false;
    while (std::getline(in, line)) {
        if ((ended = line == "end")) break;
        std::istringstream words(line);
        std::string dtype, precision, name;
        int m = 0, n = 0, k = 0;
        words >> dtype >> precision >> m >> n >> k >> name;
        const auto found = std::find(names.begin(), names.end(), name);
        const DType* type =
            std::find_if(std::begin(kTypes), std::end(kTypes), [&](DType d) { return vkml::name(d) == dtype; });
        const auto mode = precision_named(precision);
        if (words.fail() || found == names.end() || type == std::end(kTypes) || !mode)
            return ignore("a line is damaged: " + line);
        winners[{*type, *mode, m, n, k}] = static_cast<int>(found - names.begin());
    }
    return ended ? winners : ignore("it ends too early");
}

struct Known {
    std::mutex mutex;
    std::map<int, Winners> by_device;
};

Known& known() {
    static Known all;
    return all;
}

}  // namespace

int tuned_pipeline(const GemmProblem& problem, Device device) {
    Known& all = known();
    const std::lock_guard lock(all.mutex);
    auto found = all.by_device.find(device.index);
    if (found == all.by_device.end()) found = all.by_device.emplace(device.index, read_winners(device)).first;
    if (found->second.empty()) return -1;
    const auto winner = found->second.find(class_of(problem));
    return winner == found->second.end() ? -1 : winner->second;
}

std::string save_tuning(Device device, const std::vector<TunedClass>& winners) {
    const Place place = place_of(device);
    check<Error>(!place.file.empty(), "tune: expected a folder for the pipeline cache, got none (VKML_PIPELINE_CACHE)");
    std::filesystem::create_directories(place.file.parent_path());
    const std::filesystem::path partial = place.file.string() + ".tmp";
    {
        std::ofstream out(partial);
        out << kFormat << '\n' << place.owner << '\n';
        for (const TunedClass& w : winners)
            out << name(w.dtype) << ' ' << w.precision << ' ' << nearest_power(w.m) << ' ' << nearest_power(w.n) << ' '
                << nearest_power(w.k) << ' ' << w.name << '\n';
        out << "end\n";
        check<Error>(out.good(), "tune: expected to write ", partial.string());
    }
    std::filesystem::rename(partial, place.file);
    forget_tuning();
    return place.file.string();
}

void forget_tuning() {
    Known& all = known();
    const std::lock_guard lock(all.mutex);
    all.by_device.clear();
}

}  // namespace vkml
