// Layout arithmetic against brute force: the list of offsets that the indices of a layout reach, in row-major order.
#include "vkml/core/layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <vector>

using namespace vkml;

namespace {

using Offsets = std::vector<std::int64_t>;

Offsets offsets_of(const Shape& shape, const Strides& strides, std::int64_t offset) {
    Offsets out;
    for (std::int64_t i = 0; i < numel(shape); i++) {
        std::int64_t at = offset, rest = i;
        for (int axis = shape.size() - 1; axis >= 0; axis--) {
            at += rest % shape[axis] * strides[axis];
            rest /= shape[axis];
        }
        out.push_back(at);
    }
    return out;
}

Offsets offsets_of(const Layout& l) { return offsets_of(l.shape, l.strides, l.offset); }

std::string show(const Layout& l) {
    return to_string(l.shape) + " strides " + to_string(l.strides) + " offset " + std::to_string(l.offset);
}

class Random {
  public:
    std::int64_t upto(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n)(engine_); }

    Shape shape(int most_axes, std::int64_t most) {
        Shape s;
        for (auto n = upto(most_axes); n > 0; n--) s.push_back(upto(9) == 0 ? 0 : 1 + upto(most - 1));
        return s;
    }
    Dims axes(int rank) {
        Dims order;
        for (int i = 0; i < rank; i++) order.insert(static_cast<int>(upto(i)), i);
        return order;
    }
    /// A packed tensor seen through a few views; `expanding` allows stride 0.
    Layout layout(bool expanding) {
        Layout l(shape(4, 4));
        for (auto n = upto(3); n > 0; n--) {
            const int axis = l.rank() ? static_cast<int>(upto(l.rank() - 1)) : 0;
            switch (upto(expanding ? 3 : 2)) {
                case 0:
                    l = permute(l, axes(l.rank()));
                    break;
                case 1:
                    if (l.rank()) {
                        const std::int64_t start = upto(l.shape[axis]);
                        l = slice(l, axis, start, start + upto(l.shape[axis] - start), 1 + upto(2));
                    }
                    break;
                case 2:
                    if (l.rank() && l.shape[axis] > 0) l = select(l, axis, upto(l.shape[axis] - 1));
                    break;
                default: {
                    Shape target = l.shape;
                    for (std::int64_t& extent : target)
                        if (extent == 1) extent = 1 + upto(2);
                    if (target.size() < 5) target.insert(0, 1 + upto(2));
                    l = expand(l, target);
                }
            }
        }
        return l;
    }

  private:
    std::mt19937_64 engine_{20240229};
};

TEST(Layout, PackedStridesAreRowMajor) {
    EXPECT_EQ(packed_strides({2, 3, 4}), (Strides{12, 4, 1}));
    EXPECT_EQ(packed_strides({}), Strides{});
    EXPECT_EQ(packed_strides({2, 0, 4}), (Strides{4, 4, 1}));
}

TEST(Layout, PermuteReordersAxes) {
    const Layout l = permute(Layout({2, 3, 4}), {2, 0, 1});
    EXPECT_EQ(l.shape, (Shape{4, 2, 3}));
    EXPECT_EQ(l.strides, (Strides{1, 12, 4}));
}

TEST(Layout, SliceShowsEveryStepBelowStop) {
    for (std::int64_t extent = 0; extent < 8; extent++)
        for (std::int64_t start = 0; start <= extent; start++)
            for (std::int64_t stop = 0; stop <= extent; stop++)
                for (std::int64_t step = 1; step < 5; step++) {
                    Offsets expected;
                    for (std::int64_t i = start; i < stop; i += step) expected.push_back(i);
                    EXPECT_EQ(offsets_of(slice(Layout({extent}), 0, start, stop, step)), expected)
                        << extent << " " << start << ":" << stop << ":" << step;
                }
}

TEST(Layout, SelectDropsTheAxis) {
    const Layout l = select(Layout({2, 3, 4}), 1, 2);
    EXPECT_EQ(l.shape, (Shape{2, 4}));
    EXPECT_EQ(offsets_of(l), (Offsets{8, 9, 10, 11, 20, 21, 22, 23}));
}

TEST(Layout, ExpandRepeatsWithStrideZero) {
    const Layout l = expand(Layout({3, 1}), {2, 3, 4});
    EXPECT_EQ(l.strides, (Strides{0, 1, 0}));
    EXPECT_EQ(expand(Layout({0}), {2, 0}).shape, (Shape{2, 0}));
}

TEST(Layout, ContiguousMeansOffsetsCountUp) {
    Random random;
    for (int i = 0; i < 3000; i++) {
        const Layout l = random.layout(true);
        const Offsets at = offsets_of(l);
        Offsets counting(at.size());
        std::iota(counting.begin(), counting.end(), l.offset);
        EXPECT_EQ(l.is_contiguous(), at == counting) << show(l);
    }
}

TEST(Layout, CollapseKeepsTheOrderOfOffsets) {
    Random random;
    for (int i = 0; i < 3000; i++) {
        // Up to four layouts of one shape, as a kernel has them.
        const Layout a = random.layout(true);
        const int count = 1 + static_cast<int>(random.upto(3));
        std::vector<Strides> strides{a.strides};
        while (static_cast<int>(strides.size()) < count) {
            const Layout packed(a.shape);
            Strides other = random.upto(1) ? packed.strides : a.strides;
            if (a.rank() && random.upto(2) == 0) other[static_cast<int>(random.upto(a.rank() - 1))] = 0;
            strides.push_back(other);
        }
        const Collapsed c = collapse(a.shape, strides);
        ASSERT_GE(c.shape.size(), 1);
        ASSERT_LE(c.shape.size(), std::max(a.rank(), 1));
        for (int k = 0; k < count; k++)
            EXPECT_EQ(offsets_of(c.shape, c.strides[k], 0),
                      offsets_of(a.shape, strides[static_cast<std::size_t>(k)], 0))
                << show(a) << " to " << to_string(c.shape);
        for (int axis = 0; axis + 1 < c.shape.size(); axis++) {
            bool could_merge = numel(c.shape) > 0;
            for (int k = 0; k < count; k++)
                could_merge &= c.strides[k][axis] == c.strides[k][axis + 1] * c.shape[axis + 1];
            EXPECT_FALSE(could_merge) << show(a) << " to " << to_string(c.shape);
        }
    }
}

TEST(Layout, CollapseOfPackedTensorsIsOneAxis) {
    const Strides strides[] = {packed_strides({2, 3, 4}), packed_strides({2, 3, 4})};
    const Collapsed c = collapse({2, 3, 4}, strides);
    EXPECT_EQ(c.shape, (Shape{24}));
    EXPECT_EQ(c.strides[1], (Strides{1}));
    const Strides scalar[] = {Strides{}};
    EXPECT_EQ(collapse({}, scalar).shape, (Shape{1}));
}

/// Strides that show the offsets in `shape`, if there are any: an index's offset is linear in it.
bool oracle_view(const Offsets& at, const Shape& shape) {
    Strides strides = Dims::filled(shape.size(), 0);
    std::int64_t step = 1;
    for (int axis = shape.size() - 1; axis >= 0; axis--) {
        if (shape[axis] > 1) strides[axis] = at[static_cast<std::size_t>(step)] - at[0];
        step *= shape[axis];
    }
    return offsets_of(shape, strides, at[0]) == at;
}

Shape random_factors(Random& random, std::int64_t n) {
    Shape shape;
    while (n > 1 && shape.size() < 5) {
        std::vector<std::int64_t> divisors;
        for (std::int64_t d = 1; d <= n; d++)
            if (n % d == 0) divisors.push_back(d);
        const std::int64_t d =
            divisors[static_cast<std::size_t>(random.upto(static_cast<std::int64_t>(divisors.size()) - 1))];
        shape.push_back(d);
        n /= d;
    }
    shape.push_back(n);
    return shape;
}

TEST(Layout, ViewAsSucceedsExactlyWhenStridesExist) {
    Random random;
    int views = 0, copies = 0;
    for (int i = 0; i < 6000; i++) {
        const Layout l = random.layout(true);
        if (numel(l.shape) == 0) continue;
        const Shape target = random_factors(random, numel(l.shape));
        Layout out;
        const bool found = view_as(l, target, out);
        EXPECT_EQ(found, oracle_view(offsets_of(l), target)) << show(l) << " as " << to_string(target);
        if (found) {
            EXPECT_EQ(offsets_of(out), offsets_of(l)) << show(l) << " as " << to_string(target);
        }
        (found ? views : copies)++;
    }
    EXPECT_GT(views, 500);
    EXPECT_GT(copies, 50);
}

TEST(Layout, ViewAsOfNothingAlwaysFits) {
    Layout out;
    EXPECT_TRUE(view_as(permute(Layout({0, 3}), {1, 0}), {5, 0, 2}, out));
    EXPECT_EQ(out.shape, (Shape{5, 0, 2}));
}

TEST(Layout, OverlapIsNeverMissedAndNeverSeenInPlainViews) {
    Random random;
    for (int i = 0; i < 4000; i++) {
        const Layout plain = random.layout(false);
        EXPECT_FALSE(may_self_overlap(plain)) << show(plain);
        Layout any(random.shape(4, 4));
        for (std::int64_t& stride : any.strides) stride = random.upto(9);
        const Offsets at = offsets_of(any);
        const bool overlaps = std::set<std::int64_t>(at.begin(), at.end()).size() < at.size();
        if (overlaps) {
            EXPECT_TRUE(may_self_overlap(any)) << show(any);
        }
    }
    EXPECT_TRUE(may_self_overlap(expand(Layout({1, 3}), {2, 3})));
    EXPECT_FALSE(may_self_overlap(Layout({1, 3}, {0, 1}, 0)));
}

}  // namespace
