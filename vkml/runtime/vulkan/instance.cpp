#include "vkml/runtime/vulkan/instance.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>

#include "vkml/core/error.h"
#include "vkml/runtime/vulkan/environment.h"
#include "vkml/runtime/vulkan/fork.h"
#include "vkml/runtime/vulkan/result.h"
#include "vkml/runtime/vulkan/validation.h"

namespace vkml::vulkan {

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

std::atomic<bool> layers_active{false};
std::atomic<int> messages{0};

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
    messages.fetch_add(1);
    std::fprintf(stderr, "vkml: vulkan validation: %s\n", data->pMessage);
    return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info() {
    return {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .pNext = nullptr,
        .flags = 0,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = nullptr};
}

std::vector<VkExtensionProperties> extensions_of(const GlobalApi& api, const char* layer) {
    std::uint32_t count = 0;
    if (api.vkEnumerateInstanceExtensionProperties(layer, &count, nullptr) < 0) return {};
    std::vector<VkExtensionProperties> list(count);
    api.vkEnumerateInstanceExtensionProperties(layer, &count, list.data());
    list.resize(count);
    return list;
}

bool has(const std::vector<VkExtensionProperties>& list, const char* name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

bool has_layer(const GlobalApi& api, const char* name) {
    std::uint32_t count = 0;
    api.vkEnumerateInstanceLayerProperties(&count, nullptr);
    std::vector<VkLayerProperties> list(count);
    api.vkEnumerateInstanceLayerProperties(&count, list.data());
    return std::any_of(list.begin(), list.end(), [&](const auto& l) { return std::strcmp(l.layerName, name) == 0; });
}

bool want_validation(const GlobalApi& api) {
    if (!environment().validation) return false;
    if (has_layer(api, kValidationLayer)) return true;
    std::fprintf(stderr, "vkml: VKML_VULKAN_VALIDATION=1, but %s is not installed\n", kValidationLayer);
    return false;
}

void create_instance(Instance& self) {
    const bool validate = want_validation(self.global);
    auto available = extensions_of(self.global, nullptr);
    std::vector<const char*> layers, extensions;
    if (validate) {
        layers.push_back(kValidationLayer);
        auto more = extensions_of(self.global, kValidationLayer);
        available.insert(available.end(), more.begin(), more.end());
    }
    auto enable = [&](const char* name) {
        if (!has(available, name)) return false;
        extensions.push_back(name);
        return true;
    };
    self.debug_utils = (validate || environment().debug) && enable(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    const bool features = validate && enable(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
    const bool portability = enable(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);

    const VkValidationFeatureEnableEXT synchronization = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    const VkValidationFeaturesEXT validation{.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                             .pNext = nullptr,
                                             .enabledValidationFeatureCount = 1,
                                             .pEnabledValidationFeatures = &synchronization,
                                             .disabledValidationFeatureCount = 0,
                                             .pDisabledValidationFeatures = nullptr};
    auto messenger = messenger_info();
    messenger.pNext = features ? &validation : nullptr;

    const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                        .pNext = nullptr,
                                        .pApplicationName = "vkml",
                                        .applicationVersion = 0,
                                        .pEngineName = "vkml",
                                        .engineVersion = 0,
                                        .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = validate && self.debug_utils ? &messenger : nullptr,
        .flags = portability ? VkInstanceCreateFlags{VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR} : 0,
        .pApplicationInfo = &application,
        .enabledLayerCount = static_cast<std::uint32_t>(layers.size()),
        .ppEnabledLayerNames = layers.data(),
        .enabledExtensionCount = static_cast<std::uint32_t>(extensions.size()),
        .ppEnabledExtensionNames = extensions.data()};
    const VkResult result = self.global.vkCreateInstance(&info, nullptr, &self.handle);
    check<DeviceError>(result != VK_ERROR_INCOMPATIBLE_DRIVER, "no Vulkan device: the loader found no driver");
    check_result(result, "vkCreateInstance");
    self.api = load_instance(self.global, self.handle);

    if (validate && self.debug_utils && self.api.vkCreateDebugUtilsMessengerEXT) {
        const auto standing = messenger_info();
        VkDebugUtilsMessengerEXT handle;
        self.api.vkCreateDebugUtilsMessengerEXT(self.handle, &standing, nullptr, &handle);
        layers_active = true;
    }
}

void find_devices(Instance& self) {
    std::uint32_t count = 0;
    check_result(self.api.vkEnumeratePhysicalDevices(self.handle, &count, nullptr), "vkEnumeratePhysicalDevices");
    std::vector<VkPhysicalDevice> handles(count);
    check_result(self.api.vkEnumeratePhysicalDevices(self.handle, &count, handles.data()),
                 "vkEnumeratePhysicalDevices");
    handles.resize(count);
    check<DeviceError>(count > 0, "no Vulkan device: the drivers found none");
    for (VkPhysicalDevice handle : handles) self.devices.push_back(describe(self.api, handle));
    std::stable_sort(self.devices.begin(), self.devices.end(), [](const PhysicalDevice& a, const PhysicalDevice& b) {
        if (a.usable() != b.usable()) return a.usable();
        return a.rank() < b.rank();
    });
}

Instance* make_instance() noexcept {
    auto* self = new Instance;
    self->generation = fork_generation();
    try {
        self->global = load_global();
        std::uint32_t version = 0;
        self->global.vkEnumerateInstanceVersion(&version);
        check<DeviceError>(version >= VK_API_VERSION_1_1, "no Vulkan loader: expected version 1.1 or later");
        create_instance(*self);
        find_devices(*self);
    } catch (const std::exception& e) {
        self->failure = e.what();
    }
    return self;
}

}  // namespace

const Instance& instance() noexcept {
    static const Instance* const made = make_instance();
    return *made;
}

bool validation_active() { return layers_active; }
int validation_messages() { return messages; }

}  // namespace vkml::vulkan
