#include "vkml/runtime/fault.h"

#include <atomic>
#include <string>
#include <vector>

#include "vkml/core/error.h"
#include "vkml/core/fork_mutex.h"

namespace vkml {
namespace {

struct Sites {
    ForkMutex mutex;
    std::vector<std::string> names;
};

Sites& sites() {
    static auto* table = new Sites;  // outlives every static that might still launch
    return *table;
}

}  // namespace

std::uint32_t fault_site(std::string_view op) {
    Sites& table = sites();
    std::lock_guard lock(table.mutex);
    for (std::size_t i = 0; i < table.names.size(); i++)
        if (table.names[i] == op) return static_cast<std::uint32_t>(i);
    table.names.emplace_back(op);
    return static_cast<std::uint32_t>(table.names.size() - 1);
}

void throw_fault(const Fault& fault) {
    std::string op = "kernel";
    {
        Sites& table = sites();
        std::lock_guard lock(table.mutex);
        if (fault.site < table.names.size()) op = table.names[fault.site];
    }
    if (fault.code == static_cast<std::uint32_t>(FaultCode::division_by_zero))
        fail<Error>(op, ": expected a non-zero integer divisor, got 0");
    if (fault.code == static_cast<std::uint32_t>(kIllegalWeights))
        fail<ShapeError>(op, ": expected finite weights >= 0 in every row, at least ", fault.limit,
                         " of them above 0, got others in row ", fault.value);
    const std::int64_t first = op == "index" ? -fault.limit : 0;  // a subscript may count from the end
    fail<IndexError>(op, ": expected an index in [", first, ", ", fault.limit, "), got ", fault.value);
}

void report_fault(Address fault, FaultCode code, std::uint32_t site, std::int64_t value, std::int64_t limit) {
    auto* report = reinterpret_cast<Fault*>(fault);
    std::uint32_t none = 0;
    if (!std::atomic_ref(report->code).compare_exchange_strong(none, static_cast<std::uint32_t>(code))) return;
    report->site = site;
    report->value = value;
    report->limit = limit;
}

}  // namespace vkml
