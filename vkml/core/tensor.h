#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "vkml/core/device.h"
#include "vkml/core/dtype.h"
#include "vkml/core/error.h"
#include "vkml/core/intrusive.h"
#include "vkml/core/layout.h"
#include "vkml/core/storage.h"

/// Tensor: a counted handle to a view of device memory. The metadata never changes after creation; the values may.
namespace vkml {

class Node;
struct AutogradMeta;

struct TensorImpl : RefCounted<TensorImpl> {
    Storage storage;  // empty when the tensor has no elements
    Layout layout;
    DType dtype = DType::none;
    Device device;
    bool contiguous = true;
    bool wrapped_number = false;  // made from a Python scalar: ranks below real tensors in promotion
    std::int64_t numel = 0;
    std::shared_ptr<AutogradMeta> autograd;  // absent while no gradient is asked for
    bool is_view = false;                    // made over memory that another tensor held

    void release_last() noexcept { delete this; }
};

class Tensor {
  public:
    /// Undefined: what an optional tensor argument defaults to.
    Tensor() = default;
    Tensor(Storage storage, const Layout& layout, DType dtype, Device device);

    bool defined() const { return static_cast<bool>(impl_); }
    explicit operator bool() const { return defined(); }

    const Shape& shape() const { return impl().layout.shape; }
    const Strides& strides() const { return impl().layout.strides; }  ///< in elements
    std::int64_t offset() const { return impl().layout.offset; }  ///< of the first element in its storage, in elements
    const Layout& layout() const { return impl().layout; }
    int ndim() const { return impl().layout.rank(); }
    /// Extent along a possibly negative axis.
    std::int64_t size(std::int64_t dim) const { return shape()[wrap_dim("size", dim, ndim())]; }
    std::int64_t numel() const { return impl().numel; }
    DType dtype() const { return impl().dtype; }
    Device device() const { return impl().device; }
    bool is_contiguous() const { return impl().contiguous; }
    std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * itemsize(dtype()); }

    const Storage& storage() const { return impl().storage; }
    /// Device address of the first element; 0 for a tensor without elements.
    Address address() const {
        const TensorImpl& t = impl();
        return t.storage ? t.storage->address + static_cast<Address>(t.layout.offset) * itemsize(t.dtype) : 0;
    }
    /// Another view of the same storage, without a gradient history.
    Tensor view(const Layout& layout) const { return Tensor(storage(), layout, dtype(), device()); }

    bool requires_grad() const;
    /// Marks a leaf as one whose gradient is wanted. Throws DTypeError unless floating, Error on a non-leaf.
    const Tensor& requires_grad_(bool wanted = true) const;
    bool is_leaf() const;
    /// The accumulated gradient, or an undefined tensor.
    Tensor grad() const;
    void set_grad(Tensor grad) const;
    const std::shared_ptr<AutogradMeta>& autograd() const { return impl().autograd; }
    void set_autograd(std::shared_ptr<AutogradMeta> meta) const { impl().autograd = std::move(meta); }

    /// The operators of the same names, as methods; defined beside them in vkml/ops.
    Tensor reshape(const Shape& shape) const;
    Tensor permute(const Dims& axes) const;
    Tensor transpose(std::int64_t a, std::int64_t b) const;
    Tensor expand(const Shape& shape) const;
    Tensor unsqueeze(std::int64_t dim) const;
    Tensor flatten(std::int64_t start = 0, std::int64_t end = -1) const;
    Tensor contiguous() const;
    Tensor clone() const;
    Tensor detach() const;
    Tensor to(Device device) const;
    Tensor to(DType dtype) const;
    /// The one element of the tensor; waits for it. Throws Error unless numel() is 1.
    double item() const;
    /// The elements in row-major order; waits for them. T must be the dtype's own type (float for f32, std::int64_t for
    /// i64, std::uint16_t for the bits of f16 and bf16, std::uint8_t for bool); else DTypeError.
    template <class T>
    std::vector<T> to_vector() const;
    /// See vkml/autograd/engine.h.
    void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;

    /// True when nobody else holds this tensor or views its storage.
    bool is_unique() const { return impl().use_count() == 1 && (!storage() || storage()->use_count() == 1); }
    /// Same object, not same values.
    bool is(const Tensor& other) const { return impl_ == other.impl_; }
    TensorImpl& impl() const {
        if (!impl_) [[unlikely]]
            undefined();
        return *impl_;
    }

  private:
    [[noreturn]] static void undefined();
    Ref<TensorImpl> impl_;
};

/// What autograd knows of one tensor. A leaf has no node; an operator's result has one.
struct AutogradMeta {
    bool requires_grad = false;
    bool retains_grad = false;
    std::shared_ptr<Node> node;
    int output = 0;  // which of the node's outputs this tensor is
    Tensor grad;
    std::vector<std::pair<int, std::function<Tensor(const Tensor&)>>> hooks;  // (handle, hook), called in order
};

}  // namespace vkml
