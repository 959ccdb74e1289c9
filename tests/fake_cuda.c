/* A libcuda.so.1 whose one device is the CPU, so that lavapipe can be the same GPU: its memory is the process's, and an
   imported allocation is mapped as Mesa's own import does it (a header of size and offset, then the bytes). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    uint32_t type;
    union {
        int fd;
        void* two[2];
    };
    uint64_t size;
    uint32_t flags, reserved[16];
} Handle;
typedef struct {
    uint64_t offset, size;
    uint32_t flags, reserved[16];
} Range;
typedef struct {
    char* map;
    size_t bytes, offset;
} Memory;

static int imports, frees, destroys, depth, copies, synchronized;

int cuInit(unsigned flags) { return flags == 0 && !getenv("FAKE_CUDA_FAILS") ? 0 : 100; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = 40 + ordinal, ordinal != 0; }
int cuDeviceGetUuid(unsigned char* uuid, int device) {
    const char* text = getenv("FAKE_CUDA_UUID");
    for (int i = 0; i < 16; i++) {
        unsigned byte = 0;
        if (text) sscanf(text + 2 * i, "%2x", &byte);
        uuid[i] = (unsigned char)byte;
    }
    return device != 40;
}
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &depth, device != 40; }
int cuCtxPushCurrent_v2(void* context) { return depth++, context != &depth; }
int cuCtxPopCurrent_v2(void** context) { return *context = &depth, --depth < 0; }
int cuCtxSynchronize(void) { return synchronized++, depth < 1; }
int cuStreamSynchronize(void* stream) { return depth < 1 || stream != (void*)1; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
    memcpy((void*)to, (void*)from, bytes);
    return copies++, depth < 1 || stream != (void*)1;
}
int cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
    *(void**)value = NULL;
    return attribute != 1 || !pointer;
}
int cuImportExternalMemory(void** memory, const Handle* handle) {
    Memory* made = malloc(sizeof *made);
    size_t header[2];
    if (handle->type != 1 || depth < 1 || pread(handle->fd, header, sizeof header, 0) != sizeof header) return 1;
    made->bytes = header[0], made->offset = header[1];
    made->map = mmap(NULL, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, handle->fd, 0);
    close(handle->fd);
    *memory = made;
    return imports++, made->map == MAP_FAILED || made->offset + handle->size > made->bytes;
}
int cuExternalMemoryGetMappedBuffer(uint64_t* pointer, void* memory, const Range* range) {
    const Memory* from = memory;
    *pointer = (uint64_t)(from->map + from->offset + range->offset);
    return depth < 1;
}
int cuMemFree_v2(uint64_t pointer) { return frees++, !pointer; }
int cuDestroyExternalMemory(void* memory) {
    Memory* old = memory;
    munmap(old->map, old->bytes);
    free(old);
    return destroys++, 0;
}
int cuGetErrorName(int error, const char** name) {
    return *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN", 0;
}

/* For tests: imports, frees, destroys, copies, synchronizations. */
void fake_cuda_counts(int* five) {
    const int counts[] = {imports, frees, destroys, copies, synchronized};
    memcpy(five, counts, sizeof counts);
}
