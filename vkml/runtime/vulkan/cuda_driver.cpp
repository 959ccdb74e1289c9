#include "vkml/runtime/vulkan/cuda_driver.h"

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "vkml/core/error.h"
#include "vkml/core/fork_mutex.h"

#ifndef _WIN32
#include <dlfcn.h>
#include <unistd.h>
#endif

namespace vkml::vulkan::cuda {

namespace {

// cuda.h's types, as far as they are used here.
using Result = int;
using DeviceHandle = int;
using Context = void*;
using CudaStream = void*;
using Pointer = std::uint64_t;
using ExternalMemory = void*;

struct MemoryHandle {
    std::uint32_t type;
    union {
        int descriptor;
        void* windows[2];
    };
    std::uint64_t bytes;
    std::uint32_t flags, reserved[16];
};
struct MappedRange {
    std::uint64_t offset, bytes;
    std::uint32_t flags, reserved[16];
};
static_assert(sizeof(void*) != 8 || (sizeof(MemoryHandle) == 104 && sizeof(MappedRange) == 88));

constexpr std::uint32_t kOpaqueDescriptor = 1, kDedicated = 1;
constexpr int kPointersContext = 1;  // CU_POINTER_ATTRIBUTE_CONTEXT
const CudaStream kLegacyStream = reinterpret_cast<CudaStream>(std::uintptr_t{1});

// clang-format off
#define VKML_CUDA_FUNCTIONS(X)                                                      \
    X(cuInit, "cuInit", unsigned)                                                   \
    X(cuDeviceGetCount, "cuDeviceGetCount", int*)                                   \
    X(cuDeviceGet, "cuDeviceGet", DeviceHandle*, int)                               \
    X(cuDeviceGetUuid, "cuDeviceGetUuid", Uuid*, DeviceHandle)                      \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", Context*, DeviceHandle) \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", Context)                             \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", Context*)                              \
    X(cuCtxSynchronize, "cuCtxSynchronize")                                         \
    X(cuStreamSynchronize, "cuStreamSynchronize", CudaStream)                       \
    X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", Pointer, Pointer, std::size_t, CudaStream) \
    X(cuMemFree, "cuMemFree_v2", Pointer)                                           \
    X(cuPointerGetAttribute, "cuPointerGetAttribute", void*, int, Pointer)          \
    X(cuImportExternalMemory, "cuImportExternalMemory", ExternalMemory*, const MemoryHandle*) \
    X(cuExternalMemoryGetMappedBuffer, "cuExternalMemoryGetMappedBuffer", Pointer*, ExternalMemory, const MappedRange*) \
    X(cuDestroyExternalMemory, "cuDestroyExternalMemory", ExternalMemory)           \
    X(cuGetErrorName, "cuGetErrorName", Result, const char**)
// clang-format on

struct Driver {
#define VKML_DECLARE(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
    VKML_CUDA_FUNCTIONS(VKML_DECLARE)
#undef VKML_DECLARE
    std::string missing;  // why it cannot be used; empty if it can

    void check(Result result, std::string_view call) const {
        if (result == 0) return;
        const char* text = nullptr;
        if (cuGetErrorName(result, &text) != 0 || !text) text = "an error without a name";
        fail<DeviceError>(call, ": expected CUDA_SUCCESS, got ", text);
    }
};

constexpr const char* kLibrary = "libcuda.so.1";

// The library stays open for the life of the process.
void load(Driver& driver) {
#ifdef _WIN32
    driver.missing = "expected Linux, where Vulkan and CUDA exchange file descriptors";
#else
    void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        driver.missing = concat("expected CUDA's driver, got no ", kLibrary);
        return;
    }
#define VKML_LOAD(name, symbol, ...)                                               \
    driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, symbol)); \
    if (!driver.name && driver.missing.empty())                                    \
        driver.missing = concat("expected a newer CUDA driver, got a ", kLibrary, " without ", symbol);
    VKML_CUDA_FUNCTIONS(VKML_LOAD)
#undef VKML_LOAD
#endif
}

const Driver& driver() {
    static const Driver* const loaded = [] {
        auto* made = new Driver;
        load(*made);
        return made;
    }();
    check<DeviceError>(loaded->missing.empty(), "CUDA: ", loaded->missing);
    loaded->check(loaded->cuInit(0), "cuInit");
    return *loaded;
}

DeviceHandle device(int ordinal) {
    const Driver& cuda = driver();
    int count = 0;
    cuda.check(cuda.cuDeviceGetCount(&count), "cuDeviceGetCount");
    check<DeviceError>(ordinal >= 0 && ordinal < count, "CUDA: expected a device below ", count, ", got ", ordinal);
    DeviceHandle handle = 0;
    cuda.check(cuda.cuDeviceGet(&handle, ordinal), "cuDeviceGet");
    return handle;
}

/// The context that CUDA's runtime, and so PyTorch, uses; kept to the end of the process.
Context primary(int ordinal) {
    static auto* const kept = new std::map<int, Context>;
    static auto* const lock = new ForkMutex;
    std::lock_guard guard(*lock);
    Context& context = (*kept)[ordinal];
    if (!context) {
        const Driver& cuda = driver();
        cuda.check(cuda.cuDevicePrimaryCtxRetain(&context, device(ordinal)), "cuDevicePrimaryCtxRetain");
    }
    return context;
}

/// Makes a context this thread's while it lives.
class Current {
  public:
    explicit Current(Context context) : cuda_(driver()) {
        cuda_.check(cuda_.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    }
    ~Current() {
        Context popped;
        cuda_.cuCtxPopCurrent(&popped);
    }
    Current(const Current&) = delete;

  private:
    const Driver& cuda_;
};

void close_descriptor(int descriptor) {
#ifndef _WIN32
    ::close(descriptor);
#else
    static_cast<void>(descriptor);
#endif
}

}  // namespace

Uuid uuid_of(int ordinal) {
    Uuid uuid{};
    const DeviceHandle handle = device(ordinal);
    driver().check(driver().cuDeviceGetUuid(&uuid, handle), "cuDeviceGetUuid");
    return uuid;
}

int ordinal_of(const Uuid& uuid) {
    int count = 0;
    driver().check(driver().cuDeviceGetCount(&count), "cuDeviceGetCount");
    for (int i = 0; i < count; i++)
        if (uuid_of(i) == uuid) return i;
    fail<DeviceError>("CUDA: expected the Vulkan device among CUDA's ", count, ", got none with its UUID");
}

Mapping::Mapping(int ordinal, int descriptor, std::uint64_t bytes, bool dedicated) : ordinal_(ordinal) {
    try {
        const Driver& cuda = driver();
        const Current current(primary(ordinal));
        MemoryHandle handle{};
        handle.type = kOpaqueDescriptor;
        handle.descriptor = descriptor;
        handle.bytes = bytes;
        handle.flags = dedicated ? kDedicated : 0;
        cuda.check(cuda.cuImportExternalMemory(&memory_, &handle), "cuImportExternalMemory");
        descriptor = -1;  // CUDA's now
        const MappedRange range{.offset = 0, .bytes = bytes, .flags = 0, .reserved = {}};
        const Result mapped = cuda.cuExternalMemoryGetMappedBuffer(&base_, memory_, &range);
        if (mapped != 0) cuda.cuDestroyExternalMemory(memory_);
        cuda.check(mapped, "cuExternalMemoryGetMappedBuffer");
    } catch (...) {
        if (descriptor >= 0) close_descriptor(descriptor);
        throw;
    }
}

Mapping::~Mapping() {
    try {
        const Driver& cuda = driver();
        const Current current(primary(ordinal_));
        cuda.cuMemFree(base_);
        cuda.cuDestroyExternalMemory(memory_);
    } catch (const Error&) {  // CUDA has ended before us
    }
}

void copy(int ordinal, std::uint64_t target, std::uint64_t source, std::size_t bytes) {
    const Driver& cuda = driver();
    const Context context = primary(ordinal);
    Context owner = nullptr;  // stays null for memory of no single context
    cuda.cuPointerGetAttribute(&owner, kPointersContext, source);
    if (owner && owner != context) {
        // No stream of ours is ordered after those of another context.
        const Current theirs(owner);
        cuda.check(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
    }
    const Current current(context);
    cuda.check(cuda.cuMemcpyDtoDAsync(target, source, bytes, kLegacyStream), "cuMemcpyDtoDAsync");
    cuda.check(cuda.cuStreamSynchronize(kLegacyStream), "cuStreamSynchronize");
}

void synchronize(int ordinal) noexcept {
    try {
        const Current current(primary(ordinal));
        driver().cuCtxSynchronize();
    } catch (const Error&) {  // CUDA has ended before us
    }
}

}  // namespace vkml::vulkan::cuda
