#include "bind.h"
#include "vkml/runtime/probe/peak_fma.h"
#include "vkml/runtime/registry.h"

// What bench and the tests ask of a device and users need not see.
VKML_PYTHON(probe) {
    using namespace vkml;
    using namespace vkml::python;
    m.def("_peak_fma", &peak_fma, "device"_a, ReleaseGil(), "The f32 FMA rate the device reaches, in FLOP/s.");
    m.def(
        "_pipeline_count", [](Device device) { return stream(device).backend().pipeline_count(); }, "device"_a,
        "Pipelines built so far.");
}
