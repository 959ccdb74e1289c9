#pragma once
#include <string_view>

/// What `help(vkml.exp)` says: one sentence and an example for each operator of unary.def and binary.def.
namespace vkml::python {

struct ElementwiseDoc {
    std::string_view name;
    const char* text;
};

inline constexpr ElementwiseDoc elementwise_docs[] = {
    {"neg", "-x.\n\nExamples\n--------\n>>> vkml.neg(vkml.tensor([1., -2.]))\ntensor([-1.,  2.])"},
    {"abs",
     "The magnitude of each element.\n\nExamples\n--------\n>>> vkml.abs(vkml.tensor([1., "
     "-2.]))\ntensor([1., 2.])"},
    {"sign",
     "-1, 0 or 1 for each element.\n\nExamples\n--------\n>>> vkml.sign(vkml.tensor([3., 0., "
     "-2.]))\ntensor([ 1.,  0., -1.])"},
    {"square", "x * x.\n\nExamples\n--------\n>>> vkml.square(vkml.tensor([1., -3.]))\ntensor([1., 9.])"},
    {"reciprocal",
     "1 / x.\n\nExamples\n--------\n>>> vkml.reciprocal(vkml.tensor([2., -4.]))\ntensor([ "
     "0.5000, -0.2500])"},
    {"sqrt",
     "The square root; NaN below 0.\n\nExamples\n--------\n>>> vkml.sqrt(vkml.tensor([4., "
     "9.]))\ntensor([2., 3.])"},
    {"rsqrt",
     "1 / sqrt(x).\n\nExamples\n--------\n>>> vkml.rsqrt(vkml.tensor([4., "
     "16.]))\ntensor([0.5000, 0.2500])"},
    {"exp",
     "e to the power of each element.\n\nExamples\n--------\n>>> vkml.exp(vkml.tensor([0., "
     "1.]))\ntensor([1.0000, 2.7183])"},
    {"exp2",
     "2 to the power of each element.\n\nExamples\n--------\n>>> vkml.exp2(vkml.tensor([0., "
     "3.]))\ntensor([1., 8.])"},
    {"expm1",
     "exp(x) - 1, exact near 0.\n\nExamples\n--------\n>>> vkml.expm1(vkml.tensor([0., "
     "1.]))\ntensor([0.0000, 1.7183])"},
    {"log",
     "The natural logarithm; NaN below 0.\n\nExamples\n--------\n>>> "
     "vkml.log(vkml.tensor([1., 10.]))\ntensor([0.0000, 2.3026])"},
    {"log2",
     "The logarithm to base 2.\n\nExamples\n--------\n>>> vkml.log2(vkml.tensor([1., "
     "8.]))\ntensor([0., 3.])"},
    {"log1p",
     "log(1 + x), exact near 0.\n\nExamples\n--------\n>>> vkml.log1p(vkml.tensor([0., "
     "1.]))\ntensor([0.0000, 0.6931])"},
    {"erf",
     "The error function.\n\nExamples\n--------\n>>> vkml.erf(vkml.tensor([0., "
     "0.5]))\ntensor([0.0000, 0.5205])"},
    {"erfc",
     "1 - erf(x), exact for large x.\n\nExamples\n--------\n>>> vkml.erfc(vkml.tensor([0., "
     "0.5]))\ntensor([1.0000, 0.4795])"},
    {"sin",
     "The sine, in radians.\n\nExamples\n--------\n>>> vkml.sin(vkml.tensor([0., "
     "1.]))\ntensor([0.0000, 0.8415])"},
    {"cos",
     "The cosine, in radians.\n\nExamples\n--------\n>>> vkml.cos(vkml.tensor([0., "
     "1.]))\ntensor([1.0000, 0.5403])"},
    {"tan",
     "The tangent, in radians.\n\nExamples\n--------\n>>> vkml.tan(vkml.tensor([0., "
     "1.]))\ntensor([0.0000, 1.5574])"},
    {"tanh",
     "The hyperbolic tangent.\n\nExamples\n--------\n>>> vkml.tanh(vkml.tensor([0., "
     "1.]))\ntensor([0.0000, 0.7616])"},
    {"sigmoid",
     "1 / (1 + exp(-x)).\n\nExamples\n--------\n>>> vkml.sigmoid(vkml.tensor([0., "
     "2.]))\ntensor([0.5000, 0.8808])"},
    {"relu",
     "x, or 0 below 0.\n\nExamples\n--------\n>>> vkml.relu(vkml.tensor([1., "
     "-2.]))\ntensor([1., 0.])"},
    {"silu",
     "x * sigmoid(x).\n\nExamples\n--------\n>>> vkml.silu(vkml.tensor([1., -2.]))\ntensor([ "
     "0.7311, -0.2384])"},
    {"softplus",
     "log(1 + exp(x)).\n\nExamples\n--------\n>>> vkml.softplus(vkml.tensor([0., "
     "2.]))\ntensor([0.6931, 2.1269])"},
    {"logsigmoid",
     "log(sigmoid(x)).\n\nExamples\n--------\n>>> vkml.logsigmoid(vkml.tensor([0., "
     "2.]))\ntensor([-0.6931, -0.1269])"},
    {"mish",
     "x * tanh(softplus(x)).\n\nExamples\n--------\n>>> vkml.mish(vkml.tensor([1., "
     "-2.]))\ntensor([ 0.8651, -0.2525])"},
    {"round",
     "The nearest integer, ties to even.\n\nExamples\n--------\n>>> "
     "vkml.round(vkml.tensor([1.5, 2.5, -0.7]))\ntensor([ 2.,  2., -1.])"},
    {"floor",
     "The largest integer not above x.\n\nExamples\n--------\n>>> "
     "vkml.floor(vkml.tensor([1.5, -1.5]))\ntensor([ 1., -2.])"},
    {"ceil",
     "The smallest integer not below x.\n\nExamples\n--------\n>>> "
     "vkml.ceil(vkml.tensor([1.5, -1.5]))\ntensor([ 2., -1.])"},
    {"trunc",
     "The integer part.\n\nExamples\n--------\n>>> vkml.trunc(vkml.tensor([1.5, "
     "-1.5]))\ntensor([ 1., -1.])"},
    {"bitwise_not",
     "~x for integers, `not` for bools.\n\nExamples\n--------\n>>> "
     "vkml.bitwise_not(vkml.tensor([True, False]))\ntensor([False,  True])"},
    {"logical_not",
     "True where an element is 0.\n\nExamples\n--------\n>>> "
     "vkml.logical_not(vkml.tensor([0., 2.]))\ntensor([ True, False])"},
    {"isnan",
     "True where an element is NaN.\n\nExamples\n--------\n>>> vkml.isnan(vkml.tensor([1., "
     "float(\"nan\")]))\ntensor([False,  True])"},
    {"isinf",
     "True where an element is infinite.\n\nExamples\n--------\n>>> "
     "vkml.isinf(vkml.tensor([1., float(\"inf\")]))\ntensor([False,  True])"},
    {"isfinite",
     "False where an element is infinite or NaN.\n\nExamples\n--------\n>>> "
     "vkml.isfinite(vkml.tensor([1., float(\"inf\")]))\ntensor([ True, False])"},
    {"add",
     "a + b, broadcast.\n\nExamples\n--------\n>>> vkml.add(vkml.tensor([1., 2.]), "
     "vkml.tensor([[10.], [20.]]))\ntensor([[11., 12.],\n        [21., 22.]])"},
    {"sub",
     "a - b, broadcast.\n\nExamples\n--------\n>>> vkml.sub(vkml.tensor([1., 2.]), "
     "3)\ntensor([-2., -1.])"},
    {"mul",
     "a * b, broadcast.\n\nExamples\n--------\n>>> vkml.mul(vkml.tensor([1., 2.]), "
     "3)\ntensor([3., 6.])"},
    {"div",
     "a / b, broadcast; integers give floats.\n\nExamples\n--------\n>>> "
     "vkml.div(vkml.tensor([1, 2]), 2)\ntensor([0.5000, 1.0000])"},
    {"pow",
     "a to the power of b, broadcast.\n\nExamples\n--------\n>>> vkml.pow(vkml.tensor([2., "
     "3.]), 2)\ntensor([4., 9.])"},
    {"floor_divide",
     "The quotient rounded down, broadcast. An integer division by 0 is an "
     "Error.\n\nExamples\n--------\n>>> vkml.floor_divide(vkml.tensor([7, -7]), 2)\ntensor([ "
     "3, -4])"},
    {"remainder",
     "The rest of floor_divide, with the sign of b, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.remainder(vkml.tensor([7, -7]), 3)\ntensor([1, 2])"},
    {"maximum",
     "The larger of two elements, broadcast; NaN wins.\n\nExamples\n--------\n>>> "
     "vkml.maximum(vkml.tensor([1., 5.]), 3.)\ntensor([3., 5.])"},
    {"minimum",
     "The smaller of two elements, broadcast; NaN wins.\n\nExamples\n--------\n>>> "
     "vkml.minimum(vkml.tensor([1., 5.]), 3.)\ntensor([1., 3.])"},
    {"bitwise_and",
     "a & b, for integers and bools.\n\nExamples\n--------\n>>> "
     "vkml.bitwise_and(vkml.tensor([6, 3]), 2)\ntensor([2, 2])"},
    {"bitwise_or",
     "a | b, for integers and bools.\n\nExamples\n--------\n>>> "
     "vkml.bitwise_or(vkml.tensor([6, 3]), 1)\ntensor([7, 3])"},
    {"bitwise_xor",
     "a ^ b, for integers and bools.\n\nExamples\n--------\n>>> "
     "vkml.bitwise_xor(vkml.tensor([6, 3]), 1)\ntensor([7, 2])"},
    {"logical_and",
     "True where neither is 0.\n\nExamples\n--------\n>>> vkml.logical_and(vkml.tensor([0, "
     "2]), vkml.tensor([1, 1]))\ntensor([False,  True])"},
    {"logical_or",
     "True where one is not 0.\n\nExamples\n--------\n>>> vkml.logical_or(vkml.tensor([0, "
     "2]), vkml.tensor([0, 1]))\ntensor([False,  True])"},
    {"logical_xor",
     "True where exactly one is not 0.\n\nExamples\n--------\n>>> "
     "vkml.logical_xor(vkml.tensor([0, 2]), vkml.tensor([1, 1]))\ntensor([ True, False])"},
    {"equal",
     "a == b elementwise, broadcast: a bool tensor, as eq. Whether all are equal, PyTorch's equal, is "
     "equal(a, b).all().\n\nExamples\n--------\n>>> "
     "vkml.equal(vkml.tensor([1, 2]), 2)\ntensor([False,  True])"},
    {"not_equal",
     "a != b elementwise, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.not_equal(vkml.tensor([1, 2]), 2)\ntensor([ True, False])"},
    {"less",
     "a < b elementwise, broadcast.\n\nExamples\n--------\n>>> vkml.less(vkml.tensor([1, 2]), "
     "2)\ntensor([ True, False])"},
    {"less_equal",
     "a <= b elementwise, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.less_equal(vkml.tensor([1, 2]), 2)\ntensor([ True,  True])"},
    {"greater",
     "a > b elementwise, broadcast.\n\nExamples\n--------\n>>> vkml.greater(vkml.tensor([1, "
     "2]), 1)\ntensor([False,  True])"},
    {"greater_equal",
     "a >= b elementwise, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.greater_equal(vkml.tensor([1, 2]), 2)\ntensor([False,  True])"},
    {"eq",
     "a == b elementwise, broadcast: a bool tensor.\n\nExamples\n--------\n>>> "
     "vkml.eq(vkml.tensor([1, 2]), 2)\ntensor([False,  True])"},
    {"ne",
     "a != b elementwise, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.ne(vkml.tensor([1, 2]), 2)\ntensor([ True, False])"},
    {"lt",
     "a < b elementwise, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.lt(vkml.tensor([1, 2]), 2)\ntensor([ True, False])"},
    {"le",
     "a <= b elementwise, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.le(vkml.tensor([1, 2]), 2)\ntensor([ True,  True])"},
    {"gt",
     "a > b elementwise, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.gt(vkml.tensor([1, 2]), 1)\ntensor([False,  True])"},
    {"ge",
     "a >= b elementwise, broadcast.\n\nExamples\n--------\n>>> "
     "vkml.ge(vkml.tensor([1, 2]), 2)\ntensor([False,  True])"},
    {"gelu",
     "x * Phi(x), Phi the normal distribution; approximate=\"tanh\" is the cheaper "
     "form.\n\nExamples\n--------\n>>> vkml.gelu(vkml.tensor([1., -2.]))\ntensor([ 0.8413, "
     "-0.0455])"},
    {"leaky_relu",
     "x, or negative_slope * x below 0.\n\nExamples\n--------\n>>> "
     "vkml.leaky_relu(vkml.tensor([1., -2.]), 0.1)\ntensor([ 1.0000, -0.2000])"},
    {"elu",
     "x, or alpha * (exp(x) - 1) below 0.\n\nExamples\n--------\n>>> "
     "vkml.elu(vkml.tensor([1., -2.]))\ntensor([ 1.0000, -0.8647])"},
    {"hardtanh",
     "x held between min_val and max_val.\n\nExamples\n--------\n>>> "
     "vkml.hardtanh(vkml.tensor([0.5, -2.]))\ntensor([ 0.5000, -1.0000])"},
    {"scaled_add",
     "alpha * a + beta * b in one pass.\n\nExamples\n--------\n>>> "
     "vkml.scaled_add(vkml.ones(2), vkml.ones(2), 2, 3)\ntensor([5., 5.])"},
};

/// The text of an operator; null for one that has none.
constexpr const char* elementwise_doc(std::string_view name) {
    for (const ElementwiseDoc& doc : elementwise_docs)
        if (doc.name == name) return doc.text;
    return nullptr;
}

}  // namespace vkml::python
