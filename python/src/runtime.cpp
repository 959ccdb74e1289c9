#include "module.h"
#include "vkml/runtime/registry.h"

namespace vkml::python {

void bind_runtime(nb::module_& m) {
    m.def("synchronize", [] { synchronize(); }, ReleaseGil());
}

}  // namespace vkml::python
