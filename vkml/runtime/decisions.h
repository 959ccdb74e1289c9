#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkml/runtime/backend.h"

/// Which kernel variant ran, and why: choices are tables, first fit wins, the last always fits.
namespace vkml {

/// One choice. `site` names the table ("matmul.kernel"), `instead_of` the first variant that was refused, `because` its
/// reason.
struct Decision {
    std::string site, op, chose, instead_of, because;
    std::uint64_t seq = 0;       // position among all decisions of the process
    std::uint64_t dispatch = 0;  // dispatches the device had recorded before
};

/// Starts keeping the newest `capacity` decisions; stop ends it, and what was kept can still be read.
void record_decisions(std::size_t capacity = 256);
void stop_recording_decisions();
std::vector<Decision> decisions();
/// Decisions made while recording, the dropped ones included.
std::uint64_t decisions_published();

bool recording_decisions();
void publish(Decision decision);

/// A row of a choice table. `refuses` gives the reason why the variant does not fit, or null if it does.
template <class Problem>
struct Variant {
    std::string_view name;
    const char* (*refuses)(const Problem& problem, const Limits& limits);
};

/// For the last row of every table.
template <class Problem>
constexpr const char* never(const Problem&, const Limits&) {
    return nullptr;
}

/// Index of the first row that fits. The choice is published while decisions are recorded.
template <class Problem, std::size_t N>
std::size_t choose(std::string_view site, std::string_view op, const Variant<Problem> (&table)[N],
                   const Problem& problem, const Limits& limits) {
    const char* first_refusal = nullptr;
    for (std::size_t i = 0; i < N; i++) {
        const char* refusal = table[i].refuses(problem, limits);
        if (refusal && i + 1 < N) {
            if (i == 0) first_refusal = refusal;
            continue;
        }
        if (recording_decisions()) [[unlikely]]
            publish({std::string(site), std::string(op), std::string(table[i].name),
                     i ? std::string(table[0].name) : "", first_refusal ? first_refusal : "first choice fits"});
        return i;
    }
    return N - 1;
}

}  // namespace vkml
