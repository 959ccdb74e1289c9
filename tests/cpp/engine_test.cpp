// The tape and the engine, with operators made for the purpose: k * x and a * b elementwise on the CPU.
#include "vkml/autograd/engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "vkml/autograd/node.h"
#include "vkml/core/error.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"

using namespace vkml;

namespace {

using Values = std::vector<float>;

Values read(const Tensor& t) {
    Values out(static_cast<std::size_t>(t.numel()));
    to_host(t, out.data());
    return out;
}

Tensor tensor(const Values& values) {
    return from_host(values.data(), {static_cast<std::int64_t>(values.size())}, DType::f32, Device{});
}
Tensor leaf(const Values& values) { return tensor(values).requires_grad_(); }

std::vector<std::string> visits;  // names of the nodes, as the engine comes to them

Tensor scale(const Tensor& x, float k, const std::string& label = "scale") {
    Values v = read(x);
    for (float& value : v) value *= k;
    return record(label, tensor(v), {x}, keep_nothing, [k, label](const Backward& b) -> Grads {
        visits.push_back(label);
        return {scale(b.grad(), k, label + "'")};
    });
}

Tensor mul(const Tensor& x, const Tensor& y) {
    Values v = read(x);
    const Values w = read(y);
    for (std::size_t i = 0; i < v.size(); i++) v[i] *= w[i];
    return record("mul", tensor(v), {x, y}, keep_inputs(0, 1), [](const Backward& b) -> Grads {
        return {b.needs(0) ? mul(b.grad(), b.input(1)) : Tensor{}, b.needs(1) ? mul(b.grad(), b.input(0)) : Tensor{}};
    });
}

template <class E = Error>
std::string text_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const E& e) {
        return e.what();
    }
    return "nothing was thrown";
}

TEST(Engine, ChainMultiplies) {
    const Tensor x = leaf({2});
    backward(scale(scale(x, 3), 5));
    EXPECT_EQ(read(x.grad()), Values{15});
}

TEST(Engine, NewestNodeComesFirstAndEachOnce) {
    visits.clear();
    const Tensor x = leaf({2});
    const Tensor p = scale(x, 3, "p"), q = scale(x, 5, "q"), r = scale(p, 2, "r");
    const Tensor y = mul(mul(r, q), p);
    backward(y);
    EXPECT_EQ(visits, (std::vector<std::string>{"r", "q", "p"}));
    EXPECT_EQ(read(x.grad()), Values{3 * 90 * 2 * 2});  // y = 90 x^3
}

TEST(Engine, GradientsAccumulateAcrossBackwards) {
    const Tensor x = leaf({1, 2});
    for (int i = 0; i < 3; i++) backward(scale(x, 2), tensor({1, 10}));
    EXPECT_EQ(read(x.grad()), (Values{6, 60}));
}

TEST(Engine, LeafGradientIsNobodyElsesMemory) {
    const Tensor x = leaf({1}), y = leaf({1}), g = tensor({4});
    const auto pass = [](const Tensor& t) {
        return record("pass", t.view(t.layout()), {t}, keep_nothing,
                      [](const Backward& b) -> Grads { return {b.grad()}; });
    };
    backward(pass(x), g);
    backward(pass(y), g);
    fill_into(x.grad(), 9.0);
    EXPECT_EQ(read(y.grad()), Values{4});
    EXPECT_EQ(read(g), Values{4});
}

TEST(Engine, GraphIsFreedUnlessRetained) {
    const Tensor x = leaf({3});
    const Tensor y = mul(x, x);
    backward(y, {}, {.retain_graph = true});
    backward(y);
    EXPECT_EQ(read(x.grad()), Values{12});
    EXPECT_EQ(text_of([&] { backward(y); }),
              "mul: expected a graph kept by retain_graph=True, got one that a backward has freed");
    EXPECT_EQ(read(x.grad()), Values{12});
}

TEST(Engine, FreedGraphReleasesItsMemoryThoughTheResultLives) {
    Tensor x = leaf({3});
    Tensor big = scale(x, 2);
    const Tensor y = mul(big, big);
    EXPECT_FALSE(big.is_unique());
    backward(y);
    EXPECT_TRUE(big.is_unique());
}

TEST(Engine, SecondDerivative) {
    const Tensor x = leaf({3});
    const Tensor y = mul(mul(x, x), x);
    const Tensor first = grad(std::span(&y, 1), std::span(&x, 1), {}, {.create_graph = true})[0];
    EXPECT_EQ(read(first), Values{27});
    EXPECT_TRUE(first.requires_grad());
    const Tensor second = grad(std::span(&first, 1), std::span(&x, 1), {}, {.create_graph = true})[0];
    EXPECT_EQ(read(second), Values{18});
    EXPECT_EQ(read(grad(std::span(&second, 1), std::span(&x, 1))[0]), Values{6});
    EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, GradOfIntermediatesTouchesNothingElse) {
    const Tensor x = leaf({2});
    const Tensor m = scale(x, 3), y = mul(m, m);
    const Tensor wanted[] = {m, x};
    const auto g = grad(std::span(&y, 1), wanted);
    EXPECT_EQ(read(g[0]), Values{12});
    EXPECT_EQ(read(g[1]), Values{36});
    EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, GradVisitsOnlyWhatLeadsToItsInputs) {
    visits.clear();
    const Tensor x = leaf({2}), other = leaf({5});
    const Tensor y = mul(scale(x, 2, "kept"), scale(other, 2, "skipped"));
    grad(std::span(&y, 1), std::span(&x, 1));
    EXPECT_EQ(visits, std::vector<std::string>{"kept"});
}

TEST(Engine, UnusedInputNeedsPermission) {
    const Tensor x = leaf({2}), unused = leaf({1});
    const Tensor y = scale(x, 2);
    const Tensor wanted[] = {x, unused};
    EXPECT_NE(text_of([&] { grad(std::span(&y, 1), wanted, {}, {.retain_graph = true}); }).find("grad: input 1"),
              std::string::npos);
    const auto g = grad(std::span(&y, 1), wanted, {}, {.allow_unused = true});
    EXPECT_TRUE(g[0].defined());
    EXPECT_FALSE(g[1].defined());
}

TEST(Engine, HooksRunInOrderAndMayReplace) {
    const Tensor x = leaf({1});
    std::vector<float> seen;
    x.autograd()->hooks.push_back({0, [&](const Tensor& g) {
                                       seen.push_back(read(g)[0]);
                                       return scale(g, 10);
                                   }});
    x.autograd()->hooks.push_back({1, [&](const Tensor& g) {
                                       seen.push_back(read(g)[0]);
                                       return Tensor{};
                                   }});
    const Tensor m = scale(x, 2);
    m.autograd()->hooks.push_back({0, [&](const Tensor& g) {
                                       seen.push_back(read(g)[0]);
                                       return scale(g, 3);
                                   }});
    backward(m);
    EXPECT_EQ(seen, (std::vector<float>{1, 6, 60}));
    EXPECT_EQ(read(x.grad()), Values{60});
}

TEST(Engine, RetainedGradientOfAnIntermediate) {
    const Tensor x = leaf({2});
    const Tensor m = scale(x, 3);
    m.autograd()->retains_grad = true;
    backward(mul(m, m));
    EXPECT_EQ(read(m.grad()), Values{12});
}

TEST(Engine, SavedValueChangedInPlaceIsNoticed) {
    const Tensor x = leaf({2}), w = tensor({5});
    const Tensor y = mul(x, w);
    fill_into(w, 7.0);
    const std::string text = text_of([&] { backward(y); });
    EXPECT_NE(text.find("mul: expected input 1 unchanged since the forward, got one modified in place"),
              std::string::npos)
        << text;
    EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, ChangeOfWhatIsNotSavedIsFine) {
    const Tensor x = leaf({2});
    const Tensor m = scale(x, 2), y = scale(m, 3);
    fill_into(m, 7.0);
    backward(y);
    EXPECT_EQ(read(x.grad()), Values{6});
}

TEST(Engine, InPlaceOnALeafOrAViewIsRefused) {
    const Tensor x = leaf({2});
    EXPECT_NE(text_of([&] { check_in_place("copy_", x); }).find("copy_: expected a tensor that does not require grad"),
              std::string::npos);
    {
        NoGrad off;
        EXPECT_NO_THROW(check_in_place("copy_", x));
    }
    const Tensor view =
        record("view", x.view(x.layout()), {x}, view_of_input, [](const Backward& b) -> Grads { return {b.grad()}; });
    EXPECT_NE(text_of([&] { check_in_place("copy_", view); }).find("got a view"), std::string::npos);
    EXPECT_NO_THROW(check_in_place("copy_", scale(x, 1)));
}

TEST(Engine, NoGradRecordsNothingAndComesBack) {
    const Tensor x = leaf({2});
    try {
        NoGrad off;
        EXPECT_FALSE(scale(x, 2).requires_grad());
        GradMode on(true);
        EXPECT_TRUE(scale(x, 2).requires_grad());
        throw 1;
    } catch (int) {
    }
    EXPECT_TRUE(scale(x, 2).requires_grad());
    NoGrad off;
    std::thread([] { EXPECT_TRUE(grad_enabled()); }).join();
}

TEST(Engine, InputsWithoutGradientGetNone) {
    std::vector<char> needs;
    const Tensor x = leaf({2}), c = tensor({3}), none;
    const Tensor y = record("op", tensor({6}), {x, c, none}, keep_nothing, [&](const Backward& b) -> Grads {
        needs = {b.needs(0), b.needs(1), b.needs(2)};
        return {b.grad(), b.grad(), Tensor{}};
    });
    backward(y);
    EXPECT_EQ(needs, (std::vector<char>{1, 0, 0}));
    EXPECT_FALSE(c.grad().defined());
}

TEST(Engine, SeveralOutputsAndOneUnused) {
    const Tensor x = leaf({2});
    const TensorArg inputs[] = {x};
    const auto two = record("two", std::vector<Tensor>{tensor({1}), tensor({2})}, Inputs(inputs), keep_nothing,
                            [](const Backward& b) -> Grads {
                                EXPECT_FALSE(b.grad(0).defined());
                                return {scale(b.grad(1), 4)};
                            });
    backward(scale(two[1], 2));
    EXPECT_EQ(read(x.grad()), Values{8});
}

TEST(Engine, GradientsAreChecked) {
    const Tensor x = leaf({1, 2});
    const Tensor y = scale(x, 2), plain = tensor({1});
    EXPECT_EQ(text_of([&] { backward(plain); }),
              "backward: expected a tensor that requires grad, got one that does not");
    EXPECT_EQ(text_of([&] { backward(y); }), "backward: expected a gradient for an output of shape (2,), got none");
    EXPECT_EQ(text_of<ShapeError>([&] { backward(y, tensor({1})); }),
              "backward: gradient: expected shape (2,), got (1,)");
    EXPECT_THROW(backward(y, full({2}, 1.0, DType::f64, Device{})), DTypeError);
    EXPECT_FALSE(x.grad().defined());
    EXPECT_THROW(full({2}, Scalar(1), DType::i64, Device{}).requires_grad_(), DTypeError);
}

// A chain far longer than the stack could follow: built, walked and destroyed.
class LongChain : public testing::TestWithParam<Keep> {};

Tensor pass(const Tensor& x, Keep keep) {
    return record("pass", x.view(x.layout()), {x}, keep, [](const Backward& b) -> Grads { return {b.grad()}; });
}

TEST_P(LongChain, BackwardAndDestruction) {
    const Tensor x = leaf({1});
    Tensor y = x;
    for (int i = 0; i < 100000; i++) y = pass(y, GetParam());
    backward(y);
    EXPECT_EQ(read(x.grad()), Values{1});
}

TEST_P(LongChain, DestructionWithoutBackward) {
    const Tensor x = leaf({1});
    Tensor y = x;
    for (int i = 0; i < 100000; i++) y = pass(y, GetParam());
    y = {};
    EXPECT_TRUE(x.is_leaf());
}

INSTANTIATE_TEST_SUITE_P(Kept, LongChain,
                         testing::Values(keep_nothing, keep_inputs(0), keep_output, Keep{.inputs = 1, .outputs = 1}),
                         [](const auto& info) {
                             return "keeps" + std::to_string(info.param.inputs * 2 + info.param.outputs);
                         });

TEST(Engine, ThreadsShareParameters) {
    const Tensor w = leaf({1});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 100; i++) {
                const Tensor y = record("op", w.view(w.layout()), {w}, keep_nothing,
                                        [](const Backward& b) -> Grads { return {b.grad()}; });
                backward(y);
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(read(w.grad()), Values{400});
}

}  // namespace
