#include "vkml/core/tensor.h"

#include <utility>

#include "vkml/core/gradient_lock.h"

namespace vkml {

ForkMutex& gradient_lock() {
    static auto* mutex = new ForkMutex;  // outlives every tensor
    return *mutex;
}

Tensor::Tensor(Storage storage, const Layout& layout, DType dtype, Device device) : impl_(new TensorImpl) {
    TensorImpl& t = *impl_;
    t.storage = std::move(storage);
    t.is_view = t.storage && t.storage->use_count() > 1;
    t.layout = layout;
    t.dtype = dtype;
    t.device = device;
    t.contiguous = layout.is_contiguous();
    t.numel = vkml::numel(layout.shape);
}

bool Tensor::requires_grad() const {
    const auto& meta = impl().autograd;
    return meta && (meta->requires_grad || meta->node);
}

const Tensor& Tensor::requires_grad_(bool wanted) const {
    check<DTypeError>(!wanted || is_floating(dtype()), "requires_grad: expected a floating-point tensor, got ",
                      dtype());
    check<Error>(wanted || is_leaf(),
                 "requires_grad: expected a leaf tensor to switch off, got the result of an operator");
    auto& meta = impl().autograd;
    if (!meta && wanted) meta = std::make_shared<AutogradMeta>();
    if (meta && !meta->node) meta->requires_grad = wanted;
    return *this;
}

bool Tensor::is_leaf() const {
    const auto& meta = impl().autograd;
    return !meta || !meta->node;
}

Tensor Tensor::grad() const {
    const auto& meta = impl().autograd;
    if (!meta) return {};
    std::lock_guard lock(gradient_lock());
    return meta->grad;
}

void Tensor::set_grad(Tensor grad) const {
    auto& meta = impl().autograd;
    if (!meta) meta = std::make_shared<AutogradMeta>();
    std::lock_guard lock(gradient_lock());
    std::swap(meta->grad, grad);
}

void Tensor::undefined() { fail<Error>("tensor: expected a defined tensor, got an undefined one"); }

}  // namespace vkml
