#include "vkml/runtime/vulkan/api.h"

#include <string>

#include "vkml/core/error.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace vkml::vulkan {

namespace {

#if defined(_WIN32)
constexpr const char* kLoaders[] = {"vulkan-1.dll"};
#elif defined(__APPLE__)
constexpr const char* kLoaders[] = {"libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"};
#else
constexpr const char* kLoaders[] = {"libvulkan.so.1", "libvulkan.so"};
#endif

// The loader stays open for the life of the process: drivers do not survive being unloaded.
void* find_entry() {
    for (const char* name : kLoaders) {
#ifdef _WIN32
        if (HMODULE library = LoadLibraryA(name))
            return reinterpret_cast<void*>(GetProcAddress(library, "vkGetInstanceProcAddr"));
#else
        if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return dlsym(library, "vkGetInstanceProcAddr");
#endif
    }
    return nullptr;
}

}  // namespace

GlobalApi load_global() {
    GlobalApi api;
    api.vkGetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(find_entry());
    check<DeviceError>(api.vkGetInstanceProcAddr, "no Vulkan loader: ", kLoaders[0], " not found");
#define VKML_LOAD(name) api.name = reinterpret_cast<PFN_##name>(api.vkGetInstanceProcAddr(nullptr, #name));
    VKML_GLOBAL_FUNCTIONS(VKML_LOAD)
#undef VKML_LOAD
    check<DeviceError>(api.vkCreateInstance && api.vkEnumerateInstanceVersion,
                       "no Vulkan loader: expected one of Vulkan 1.1 or later in ", kLoaders[0]);
    return api;
}

InstanceApi load_instance(const GlobalApi& global, VkInstance instance) {
    InstanceApi api;
#define VKML_LOAD(name) api.name = reinterpret_cast<PFN_##name>(global.vkGetInstanceProcAddr(instance, #name));
    VKML_INSTANCE_FUNCTIONS(VKML_LOAD)
#undef VKML_LOAD
    return api;
}

DeviceApi load_device(const InstanceApi& instance, VkDevice device) {
    DeviceApi api;
#define VKML_LOAD(name) api.name = reinterpret_cast<PFN_##name>(instance.vkGetDeviceProcAddr(device, #name));
    VKML_DEVICE_FUNCTIONS(VKML_LOAD)
#undef VKML_LOAD
    return api;
}

}  // namespace vkml::vulkan
