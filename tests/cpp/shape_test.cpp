// Shapes, axes, broadcasting, device names, and the texts of their errors.
#include "vkml/core/shape.h"

#include <gtest/gtest.h>

#include <functional>

#include "vkml/core/device.h"
#include "vkml/core/error.h"

using namespace vkml;

namespace {

template <class E>
std::string text_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const E& e) {
        return e.what();
    } catch (const std::exception& e) {
        return std::string("another class: ") + e.what();
    }
    return "nothing was thrown";
}

TEST(ShapeTest, PrintsAsPythonTuple) {
    EXPECT_EQ(to_string(Shape{}), "()");
    EXPECT_EQ(to_string(Shape{3}), "(3,)");
    EXPECT_EQ(to_string(Shape{2, 3}), "(2, 3)");
}

TEST(ShapeTest, RankStopsAtEight) {
    Dims dims = Dims::filled(8, 1);
    EXPECT_EQ(text_of<ShapeError>([&] { dims.push_back(1); }), "shape: expected rank <= 8, got rank 9");
    EXPECT_EQ(dims.size(), 8);
    EXPECT_THROW(Dims({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
}

TEST(ShapeTest, InsertAndErase) {
    Dims d{1, 2, 3};
    d.insert(1, 9);
    EXPECT_EQ(d, (Dims{1, 9, 2, 3}));
    d.erase(0);
    EXPECT_EQ(d, (Dims{9, 2, 3}));
    d.erase(2);
    EXPECT_EQ(d, (Dims{9, 2}));
}

TEST(ShapeTest, NumelNoticesOverflow) {
    const std::int64_t big = std::int64_t{1} << 32;
    EXPECT_EQ(numel({}), 1);
    EXPECT_EQ(numel({3, 0, 5}), 0);
    EXPECT_EQ(numel({big, big, 0}), 0);
    EXPECT_EQ(numel({big, big / 4}), std::int64_t{1} << 62);
    EXPECT_EQ(text_of<ShapeError>([&] { numel({big, big}); }),
              "shape: expected fewer than 2^63 elements, got (4294967296, 4294967296)");
}

TEST(ShapeTest, AxesWrap) {
    for (int rank = 1; rank <= 8; rank++)
        for (int i = 0; i < rank; i++) {
            EXPECT_EQ(wrap_dim("op", i, rank), i);
            EXPECT_EQ(wrap_dim("op", i - rank, rank), i);
        }
    EXPECT_EQ(wrap_dim("op", -1, 0), 0);
    EXPECT_EQ(wrap_dim("op", 0, 0), 0);
    EXPECT_EQ(text_of<IndexError>([] { wrap_dim("softmax", 1, 0); }), "softmax: expected dim in [-1, 0], got 1");
    EXPECT_EQ(text_of<IndexError>([] { wrap_dim("softmax", -4, 3); }), "softmax: expected dim in [-3, 2], got -4");
    EXPECT_THROW(wrap_dim("op", INT64_MIN, 3), IndexError);
}

TEST(ShapeTest, ListsOfAxesAreDistinct) {
    EXPECT_EQ(wrap_dims("sum", {-1, 0}, 3), (Dims{2, 0}));
    EXPECT_EQ(wrap_dims("sum", {}, 3), (Dims{0, 1, 2}));
    EXPECT_EQ(text_of<ShapeError>([] { wrap_dims("sum", {1, -2}, 3); }), "sum: expected distinct axes, got (1, -2)");
    EXPECT_THROW(wrap_dims("sum", {3}, 3), IndexError);
}

TEST(ShapeTest, BroadcastingOfAllSmallShapes) {
    // Every pair of shapes of rank <= 2 with extents 0 to 3.
    std::vector<Shape> shapes{Shape{}};
    for (std::int64_t a = 0; a < 4; a++) {
        shapes.push_back({a});
        for (std::int64_t b = 0; b < 4; b++) shapes.push_back({a, b});
    }
    for (const Shape& a : shapes)
        for (const Shape& b : shapes) {
            Shape expected;
            bool fits = true;
            for (int i = 1; i <= std::max(a.size(), b.size()); i++) {
                const std::int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
                fits &= x == y || x == 1 || y == 1;
                expected.insert(0, x == 1 ? y : x);
            }
            if (fits)
                EXPECT_EQ(broadcast_shapes("add", a, b), expected) << to_string(a) << to_string(b);
            else
                EXPECT_EQ(text_of<ShapeError>([&] { broadcast_shapes("add", a, b); }),
                          "add: expected shapes that broadcast, got " + to_string(a) + " and " + to_string(b));
        }
}

TEST(DeviceTest, NamesParseAndPrint) {
    EXPECT_EQ(parse_device("cpu"), Device{});
    EXPECT_EQ(parse_device("vulkan"), parse_device("vulkan:0"));
    EXPECT_EQ(to_string(parse_device("vulkan:12")), "vulkan:12");
    for (const char* bad :
         {"", "cuda", "cpu:0", "vulkan:", "vulkan:-1", "vulkan:x", "vulkan:1x", "vulkan:99999999999", "Vulkan"})
        EXPECT_EQ(text_of<DeviceError>([&] { parse_device(bad); }),
                  std::string("device: expected \"cpu\", \"vulkan\" (a GPU of any make) or \"vulkan:N\", got \"") +
                      bad + "\"");
}

TEST(ErrorTest, EveryClassIsAnError) {
    EXPECT_THROW(fail<ShapeError>("a"), Error);
    EXPECT_THROW(fail<DTypeError>("a"), Error);
    EXPECT_THROW(fail<IndexError>("a"), Error);
    EXPECT_THROW(fail<DeviceError>("a"), Error);
    EXPECT_THROW(fail<NotImplementedError>("a"), Error);
    EXPECT_THROW(fail<OutOfMemoryError>("a"), Error);
    EXPECT_NO_THROW(check(true, "a"));
    EXPECT_EQ(concat("op: ", Shape{2, 3}, " ", DType::bf16, " ", Device{}, " ", 7, " ", 1.5),
              "op: (2, 3) bfloat16 cpu 7 1.5");
}

}  // namespace
