#include "module.h"
#include "vkml/runtime/capture.h"
#include "vkml/runtime/configuration.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/log.h"
#include "vkml/runtime/registry.h"

namespace vkml::python {
namespace {

template <class... Pairs>
nb::dict dict_of(const Pairs&... pairs) {
    nb::dict out;
    ((out[pairs.first] = nb::cast(pairs.second)), ...);
    return out;
}

Device or_default(const std::optional<Device>& device) { return device.value_or(default_device()); }

nb::dict limits_of(const Limits& l) {
    nb::list shapes;
    for (const auto& c : l.cooperative_matrices)
        shapes.append(nb::make_tuple(c.m, c.n, c.k, std::string(name(c.operand)), std::string(name(c.accumulator))));
    return dict_of(std::pair("max_workgroup_invocations", l.max_workgroup_invocations),
                   std::pair("max_workgroup_size",
                             nb::make_tuple(l.max_workgroup_size[0], l.max_workgroup_size[1], l.max_workgroup_size[2])),
                   std::pair("max_grid", nb::make_tuple(l.max_grid[0], l.max_grid[1], l.max_grid[2])),
                   std::pair("shared_memory", l.shared_memory), std::pair("subgroup_size", l.subgroup_size),
                   std::pair("min_subgroup_size", l.min_subgroup_size),
                   std::pair("max_subgroup_size", l.max_subgroup_size), std::pair("max_allocation", l.max_allocation),
                   std::pair("total_memory", l.total_memory), std::pair("compute_units", l.compute_units),
                   std::pair("f16_storage", l.f16_storage), std::pair("i8_storage", l.i8_storage),
                   std::pair("f16", l.f16), std::pair("f64", l.f64), std::pair("i64", l.i64),
                   std::pair("denormals_f32", l.denormals_f32), std::pair("cooperative_matrices", shapes));
}

nb::dict device_info(std::optional<Device> device) {
    const Device d = or_default(device);
    const Limits limits = stream(d).limits();
    nb::dict out;
    for (const DeviceRecord& r : devices())
        if (r.device == d)
            out = dict_of(std::pair("device", to_string(d)), std::pair("name", r.name), std::pair("type", r.type),
                          std::pair("driver", r.driver), std::pair("memory", r.memory));
    out.update(limits_of(limits));
    if (!d.is_cpu())
        for (const auto& [key, value] : vulkan::info(d.index)) out[nb::cast(key)] = value;
    return out;
}

nb::dict memory_stats(std::optional<Device> device) {
    const MemoryStats s = stream(or_default(device)).memory_stats();
    return dict_of(std::pair("in_use_bytes", s.in_use_bytes), std::pair("peak_in_use_bytes", s.peak_in_use_bytes),
                   std::pair("reserved_bytes", s.reserved_bytes), std::pair("live_allocations", s.live_allocations),
                   std::pair("total_allocations", s.total_allocations),
                   std::pair("device_allocations", s.device_allocations), std::pair("block_count", s.block_count),
                   std::pair("fragmentation", s.fragmentation()));
}

nb::list memory_snapshot(std::optional<Device> device) {
    nb::list out;
    for (const PoolSlab& slab : stream(or_default(device)).memory_snapshot()) {
        nb::list blocks;
        for (const PoolSlab::Part& part : slab.parts)
            blocks.append(dict_of(std::pair("offset", part.offset), std::pair("bytes", part.bytes),
                                  std::pair("in_use", part.in_use)));
        out.append(dict_of(std::pair("address", slab.address), std::pair("bytes", slab.bytes),
                           std::pair("in_use_bytes", slab.in_use_bytes), std::pair("blocks", blocks)));
    }
    return out;
}

void bind_devices(nb::module_& m) {
    nb::class_<DeviceRecord>(m, "DeviceRecord", "One entry of devices().")
        .def_prop_ro("device", [](const DeviceRecord& r) { return r.device; })
        .def_ro("name", &DeviceRecord::name)
        .def_ro("type", &DeviceRecord::type, "discrete, integrated, virtual or cpu.")
        .def_ro("driver", &DeviceRecord::driver)
        .def_ro("memory", &DeviceRecord::memory, "Bytes.")
        .def_ro("usable", &DeviceRecord::usable)
        .def_ro("why", &DeviceRecord::why, "Why it is not usable, or not chosen by default.")
        .def("__repr__", [](const DeviceRecord& r) {
            return "DeviceRecord(device=\"" + to_string(r.device) + "\", name=\"" + r.name + "\", type=\"" + r.type +
                   "\", usable=" + (r.usable ? "True" : "False") + ", why=\"" + r.why + "\")";
        });
    m.def("devices", &devices, R"(Every device, best first; `why` says why one is unusable or not the default.

Examples
--------
>>> any(str(d.device) == "cpu" and d.usable for d in vkml.devices())
True
)");
    m.def("_has_vulkan", &has_vulkan);
    m.def("device_info", &device_info, "device"_a = nb::none(),
          R"(What kernel choice depends on: limits, subgroup sizes, element types, cooperative matrices.

Examples
--------
>>> vkml.device_info("cpu")["type"]
'cpu'
)");
    m.def("memory_stats", &memory_stats, "device"_a = nb::none(), R"(Bytes and counts of a device's memory pool.

Examples
--------
>>> x = vkml.ones(1024, device="cpu")
>>> vkml.memory_stats("cpu")["in_use_bytes"] >= 4096
True
)");
    m.def("memory_snapshot", &memory_snapshot, "device"_a = nb::none(),
          nb::sig("def memory_snapshot(device: device | str | None = None) -> list[dict[str, typing.Any]]"),
          "What lies where in a device's memory pool: one entry per piece of device memory with its address, bytes, "
          "in_use_bytes and blocks (offset, bytes, in_use).\n\n"
          "Examples\n--------\n>>> x = vkml.ones(1000)\n>>> sum(s[\"in_use_bytes\"] for s in "
          "vkml.memory_snapshot()) >= x.nbytes\nTrue");
    m.def(
        "empty_cache", [](std::optional<Device> d) { stream(or_default(d)).empty_cache(); }, "device"_a = nb::none(),
        ReleaseGil(), R"(Gives unused memory back to the device.

Examples
--------
>>> vkml.empty_cache("cpu")
)");
    m.def(
        "reset_peak_memory", [](std::optional<Device> d) { stream(or_default(d)).reset_peak_memory(); },
        "device"_a = nb::none(), R"(Starts counting the peak anew, from what is in use now.

Examples
--------
>>> vkml.reset_peak_memory("cpu")
>>> stats = vkml.memory_stats("cpu")
>>> stats["peak_in_use_bytes"] == stats["in_use_bytes"]
True
)");
    m.def(
        "synchronize", [](std::optional<Device> d) { d ? stream(*d).synchronize() : synchronize(); },
        "device"_a = nb::none(), ReleaseGil(),
        R"(Waits for all submitted work of a device, or of every device, and raises what kernels reported.

Examples
--------
>>> y = vkml.ones(4) * 2
>>> vkml.synchronize()
)");
    m.def(
        "_submit", [](std::optional<Device> d) { stream(or_default(d)).submit(); }, "device"_a = nb::none(),
        ReleaseGil());
    m.def(
        "dispatch_count", [](std::optional<Device> d) { return stream(or_default(d)).dispatch_count(); },
        "device"_a = nb::none(), R"(Dispatches recorded so far.

Examples
--------
>>> before = vkml.dispatch_count()
>>> y = vkml.exp(vkml.ones(2))
>>> vkml.dispatch_count() - before
2
)");
    m.def("set_eager", &set_eager, "eager"_a,
          R"(True waits after every operator, so that an error appears where it was made. For debugging.

Examples
--------
>>> vkml.set_eager(True)
>>> vkml.is_eager()
True
>>> vkml.set_eager(False)
)");
    m.def("is_eager", &is_eager, R"(Whether every operator is waited for.

Examples
--------
>>> vkml.is_eager()
False
)");
}

void bind_decisions(nb::module_& m) {
    m.def("record_decisions", &record_decisions, "capacity"_a = 256,
          R"(Starts keeping the newest choices between kernels.

Examples
--------
>>> vkml.record_decisions()
>>> y = vkml.sum(vkml.ones(100))
>>> vkml.stop_recording_decisions()
>>> len(vkml.decisions()) > 0
True
)");
    m.def("stop_recording_decisions", &stop_recording_decisions, R"(Stops recording; what is kept stays readable.

Examples
--------
>>> vkml.record_decisions()
>>> vkml.stop_recording_decisions()
>>> vkml.decisions()
[]
)");
    m.def("decisions_published", &decisions_published, R"(Choices made while recording, those dropped included.

Examples
--------
>>> vkml.record_decisions()
>>> y = vkml.sum(vkml.ones(100))
>>> vkml.stop_recording_decisions()
>>> vkml.decisions_published() >= len(vkml.decisions())
True
)");
    m.def(
        "decisions",
        [] {
            nb::list out;
            for (const Decision& d : decisions())
                out.append(dict_of(std::pair("site", d.site), std::pair("op", d.op), std::pair("chose", d.chose),
                                   std::pair("instead_of", d.instead_of), std::pair("because", d.because),
                                   std::pair("seq", d.seq), std::pair("dispatch", d.dispatch)));
            return out;
        },
        nb::sig("def decisions() -> list[dict[str, typing.Any]]"), R"(Which kernel variants ran and why, oldest first.

Examples
--------
>>> vkml.record_decisions()
>>> y = vkml.sum(vkml.ones(100))
>>> vkml.stop_recording_decisions()
>>> sorted(vkml.decisions()[0])
['because', 'chose', 'dispatch', 'instead_of', 'op', 'seq', 'site']
)");
    m.def(
        "configuration",
        [] {
            nb::list out;
            for (const Setting& s : configuration())
                out.append(dict_of(std::pair("name", s.name), std::pair("value", s.value), std::pair("set", s.set)));
            return out;
        },
        nb::sig("def configuration() -> list[dict[str, typing.Any]]"),
        R"(Every VKML_* environment switch with its value.

Examples
--------
>>> "VKML_DEVICE" in [s["name"] for s in vkml.configuration()]
True
)");
    m.def("_set_log_level", [](int level) { set_log_level(static_cast<LogLevel>(level)); });
    m.def("_log_level", [] { return static_cast<int>(log_level()); });
}

void bind_capture(nb::module_& m) {
    nb::class_<Capture>(m, "Capture", "A recorded run of device work; replay() submits it again on the same tensors.")
        .def("replay", &Capture::replay, ReleaseGil(), "Runs the recorded commands again, at the cost of one submit.")
        .def("__len__", &Capture::size)
        .def("__repr__", [](const Capture& c) { return "Capture(" + std::to_string(c.size()) + " commands)"; });
    m.def(
        "capture",
        [](nb::callable fn, std::optional<Device> device) {
            Stream& on = stream(or_default(device));
            GilRelease unlocked;  // it may have to wait for another thread's capture
            Capture capture(on, [&] {
                nb::gil_scoped_acquire gil;
                fn();
            });
            check<Error>(capture.size() > 0, "capture: expected fn to compute on ", to_string(on.device()),
                         ", got no work there: name the device its tensors are on");
            return capture;
        },
        "fn"_a, "device"_a = nb::none(),
        R"(Runs fn once and records what it does on `device` (the default device unless named).

replay() does the same again on the same tensors. Numbers that fn passes, explicit seeds included, are those of the
recording; draws of the default generator are new in each replay, those that the same step would have got without a
capture. Reading a tensor inside fn is an Error, and so is an
fn that does nothing on the device.

Examples
--------
>>> x = vkml.zeros(2, device="cpu")
>>> step = vkml.capture(lambda: x.add_(1), device="cpu")
>>> step.replay()
>>> x
tensor([2., 2.])
)");
    m.def(
        "_profile", [](bool on, std::optional<Device> d) { stream(or_default(d)).backend().profile(on); }, "on"_a,
        "device"_a = nb::none());
    m.def(
        "_spans",
        [](std::optional<Device> d) {
            nb::list out;
            Stream& on = stream(or_default(d));
            on.synchronize();
            for (const GpuSpan& s : on.backend().spans())
                out.append(nb::make_tuple(std::string(s.label), s.begin_ns, s.end_ns, s.submission));
            return out;
        },
        "device"_a = nb::none());
}

}  // namespace

void bind_runtime(nb::module_& m) {
    bind_devices(m);
    bind_decisions(m);
    bind_capture(m);
    m.attr("__version__") = VKML_VERSION;
}

}  // namespace vkml::python
