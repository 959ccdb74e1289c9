#include "vkml/ops/index/subscript_py.h"

#include <vector>

#include "vkml/core/error.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/index/advanced.h"
#include "vkml/ops/index/basic.h"
#include "vkml/ops/index/index.h"
#include "vkml/runtime/registry.h"

namespace vkml::python {
namespace {

/// A key taken apart: the view its ints, slices and Nones give, and the index tensors that apply to that view, one per
/// axis.
struct Subscript {
    BasicIndex basic;
    std::vector<Tensor> arrays;
    bool advanced = false;
};

std::string text_of(nb::handle h) { return nb::cast<std::string>(nb::repr(h)); }

/// A NumPy array (or what becomes one) as a tensor of its own dtype.
Tensor from_array(nb::handle item, Device device) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    nb::object array = numpy.attr("asarray")(item);
    const std::string kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
    DType dtype = DType::boolean;
    if (kind == "i" || kind == "u" ||
        (kind == "f" && nb::cast<std::int64_t>(array.attr("size")) == 0 && !nb::hasattr(item, "dtype"))) {
        array = array.attr("astype")("int64");  // an empty list has no kind of its own
        dtype = DType::i64;
    } else if (kind != "b") {
        fail<IndexError>("index: expected ints, slices, None, Ellipsis, bool masks or integer arrays, got ",
                         text_of(item));
    }
    const nb::bytes data(array.attr("tobytes")());
    return from_host(data.c_str(), nb::cast<Dims>(array.attr("shape")), dtype, device);
}

bool is_tensor(nb::handle h) { return nb::isinstance<Tensor>(h); }

bool is_plain_bool(nb::handle h) {
    if (PyBool_Check(h.ptr())) return true;
    return !is_tensor(h) && !PyLong_Check(h.ptr()) && nb::hasattr(h, "dtype") && nb::hasattr(h, "ndim") &&
           nb::cast<int>(h.attr("ndim")) == 0 && nb::cast<std::string>(h.attr("dtype").attr("kind")) == "b";
}

bool is_array(nb::handle h) {
    if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr()) || PyRange_Check(h.ptr())) return true;
    return nb::hasattr(h, "ndim") && nb::hasattr(h, "__array__") && nb::cast<int>(h.attr("ndim")) > 0;
}

/// Axes of the tensor that one part of a key uses up.
int axes_of(nb::handle part) {
    if (part.is_none() || part.is(nb::handle(Py_Ellipsis)) || is_plain_bool(part)) return 0;
    if (is_tensor(part)) {
        const Tensor& t = nb::cast<const Tensor&>(part);
        return t.dtype() == DType::boolean ? t.ndim() : 1;
    }
    if (is_array(part) && nb::hasattr(part, "dtype") && nb::cast<std::string>(part.attr("dtype").attr("kind")) == "b")
        return nb::cast<int>(part.attr("ndim"));
    return 1;
}

class Parser {
  public:
    explicit Parser(const Tensor& t) : tensor_(t) {}

    Subscript parse(nb::handle key) {
        std::vector<nb::object> parts;
        if (PyTuple_Check(key.ptr()))
            for (nb::handle part : nb::borrow<nb::tuple>(key)) parts.push_back(nb::borrow(part));
        else
            parts.push_back(nb::borrow(key));
        int used = 0, ellipses = 0;
        // Lists of bools are masks: only as arrays do they say how many axes they take.
        for (nb::object& part : parts) {
            if (!is_tensor(part) && is_array(part)) part = nb::cast(from_array(part, tensor_.device()));
            used += axes_of(part);
            ellipses += part.is(nb::handle(Py_Ellipsis));
        }
        check<IndexError>(ellipses <= 1, "index: expected at most one Ellipsis, got ", ellipses);
        check<IndexError>(used <= tensor_.ndim(), "index: expected at most ", tensor_.ndim(), " indices for shape ",
                          tensor_.shape(), ", got ", used);
        for (const nb::object& part : parts) add(part, used);
        return std::move(out_);
    }

  private:
    void add(nb::handle part, int used) {
        if (part.is(nb::handle(Py_Ellipsis))) {
            for (int skip = tensor_.ndim() - used; skip > 0; skip--) keep();
        } else if (part.is_none()) {
            insert();
        } else if (PySlice_Check(part.ptr())) {
            add_slice(part);
        } else if (is_plain_bool(part)) {
            insert();
            out_.arrays.back() = full({1}, Scalar(PyObject_IsTrue(part.ptr()) == 1), DType::boolean, tensor_.device());
            out_.advanced = true;
        } else if (is_tensor(part)) {
            add_tensor(nb::cast<const Tensor&>(part));
        } else {
            add_int(part);
        }
    }

    void keep() {
        out_.arrays.emplace_back();
        source_++;
        shown_++;
    }

    void insert() {
        out_.basic.steps.push_back({BasicIndex::Kind::insert, shown_});
        out_.arrays.emplace_back();
        shown_++;
    }

    void add_slice(nb::handle part) {
        Py_ssize_t start = 0, stop = 0, step = 0;
        if (PySlice_Unpack(part.ptr(), &start, &stop, &step) < 0) nb::raise_python_error();
        check(step > 0, "index: expected a slice step > 0, got ", static_cast<std::int64_t>(step),
              "; flip() reverses an axis");
        const std::int64_t extent = tensor_.shape()[source_];
        PySlice_AdjustIndices(extent, &start, &stop, step);
        if (start != 0 || stop != extent || step != 1)
            out_.basic.steps.push_back({BasicIndex::Kind::slice, shown_, start, stop, step});
        keep();
    }

    void add_int(nb::handle part) {
        const nb::object index = nb::steal(PyNumber_Index(part.ptr()));
        if (!index.is_valid()) {
            PyErr_Clear();
            fail<IndexError>("index: expected ints, slices, None, Ellipsis, bool masks or integer arrays, got ",
                             text_of(part));
        }
        int overflow = 0;
        std::int64_t value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
        const std::int64_t extent = tensor_.shape()[source_];
        check<IndexError>(!overflow && value >= -extent && value < extent, "index: expected an index in [", -extent,
                          ", ", extent, ") for axis ", source_, ", got ", text_of(index));
        if (value < 0) value += extent;
        out_.basic.steps.push_back({BasicIndex::Kind::select, shown_, value});
        source_++;
    }

    void add_tensor(const Tensor& index) {
        out_.advanced = true;
        if (index.dtype() == DType::boolean && index.ndim() == 0) {
            insert();
            out_.arrays.back() = index.view(Layout({1}, {1}, index.offset()));
            return;
        }
        const int axes = index.dtype() == DType::boolean ? index.ndim() : 1;
        // A mask stands for all its axes at once.
        out_.arrays.push_back(index);
        source_ += axes;
        shown_ += axes;
    }

    const Tensor& tensor_;
    Subscript out_;
    int source_ = 0, shown_ = 0;  // the next axis of the tensor, and of the view
};

Tensor value_of(nb::handle value, const Tensor& target) {
    if (is_tensor(value)) return nb::cast<const Tensor&>(value);
    Scalar number(0.0);
    if (to_scalar(value, number)) return full({}, number, target.dtype(), target.device());
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::object array = numpy.attr("asarray")(value);
    const nb::bytes data(array.attr("tobytes")());
    return from_host(data.c_str(), nb::cast<Dims>(array.attr("shape")), to_dtype(array.attr("dtype")), target.device());
}

}  // namespace

Tensor subscript(const Tensor& t, nb::handle key) {
    const Subscript s = Parser(t).parse(key);
    GilRelease unlocked;
    if (!s.advanced) return basic_get(t, s.basic);
    return index_get(s.basic.steps.empty() ? t : basic_get(t, s.basic), s.arrays);
}

void assign_subscript(const Tensor& t, nb::handle key, nb::handle value) {
    const Subscript s = Parser(t).parse(key);
    // Converted like any store; a value's gradient passes back through the cast.
    const Tensor given = cast(value_of(value, t), t.dtype());
    GilRelease unlocked;
    if (!s.advanced) return basic_put(t, s.basic, given);
    if (s.basic.steps.empty()) return index_put(t, s.arrays, given);
    mixed_put(t, s.basic, s.arrays, given);
}

}  // namespace vkml::python
