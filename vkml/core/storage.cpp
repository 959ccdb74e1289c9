#include "vkml/core/storage.h"

namespace vkml {
namespace {

struct BorrowedBlock final : Block, BlockOwner {
    void* context = nullptr;
    void (*release)(void*) = nullptr;

    void take_back(Block*) noexcept override {
        if (release) release(context);
        delete this;
    }
};

}  // namespace

Storage borrow_host(void* data, std::size_t bytes, void* context, void (*release)(void*)) {
    auto* block = new BorrowedBlock;
    block->address = reinterpret_cast<Address>(data);
    block->bytes = bytes;
    block->host = data;
    block->owner = block;
    block->context = context;
    block->release = release;
    return Storage(block);
}

}  // namespace vkml
