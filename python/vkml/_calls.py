"""Says which argument of a bound function does not fit. Only failed calls come here (python/src/calls.cpp)."""

from __future__ import annotations

import ast
import inspect
import operator
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _core

# What a type of a signature is called in an error, for one value and for several.
WORDS = {
    "int": ("an int", "ints"),
    "float": ("a float", "floats"),
    "bool": ("a bool", "bools"),
    "str": ("a string", "strings"),
    "None": ("None", "None"),
    "Tensor": ("a Tensor", "Tensors"),
    "Callable": ("a callable", "callables"),
    "ndarray": ("a NumPy array", "NumPy arrays"),
}
SEQUENCES = ("Sequence", "list", "tuple", "Iterable")
NUMBER = {"bool", "int", "float"}


class Parameter(NamedTuple):
    name: str
    type: ast.expr | None  # None takes anything
    kind: Any
    required: bool


def operator_name(function: Any) -> str:
    """The word that errors begin with: `softmax`, and `device` for `device.__init__`."""
    return function.__qualname__.split(".")[0] if function.__name__ == "__init__" else function.__name__


def parameters(signature: str) -> list[Parameter]:
    """Reads one overload as nanobind writes it: types by their Python names, defaults as \\0, \\1."""
    head = re.sub(r"\\=?\d+", "...", signature.strip().splitlines()[-1])
    head = re.sub(r"\bndarray\[[^]]*\]", "ndarray", head)  # its brackets hold no types
    found = ast.parse(head + ": ...").body[0]
    assert isinstance(found, ast.FunctionDef)
    a = found.args
    positional = [*a.posonlyargs, *a.args]
    optional = len(a.defaults)
    out = [
        Parameter(p.arg, p.annotation, inspect.Parameter.POSITIONAL_OR_KEYWORD, i < len(positional) - optional)
        for i, p in enumerate(positional)
    ]
    if a.vararg:
        out.append(Parameter(a.vararg.arg, a.vararg.annotation, inspect.Parameter.VAR_POSITIONAL, False))
    out += [
        Parameter(p.arg, p.annotation, inspect.Parameter.KEYWORD_ONLY, default is None)
        for p, default in zip(a.kwonlyargs, a.kw_defaults, strict=True)
    ]
    if a.kwarg:
        out.append(Parameter(a.kwarg.arg, a.kwarg.annotation, inspect.Parameter.VAR_KEYWORD, False))
    return out


def alternatives(type_: ast.expr | None) -> list[ast.expr]:
    if isinstance(type_, ast.BinOp):
        return alternatives(type_.left) + alternatives(type_.right)
    return [] if type_ is None else [type_]


def word(type_: ast.expr) -> str:
    """The last name of a type: Tensor for vkml._core.Tensor, Sequence for collections.abc.Sequence[int]."""
    if isinstance(type_, ast.Subscript):
        return word(type_.value)
    if isinstance(type_, ast.Attribute):
        return type_.attr
    if isinstance(type_, ast.Constant):
        return str(type_.value)
    return type_.id if isinstance(type_, ast.Name) else "object"


def items(type_: ast.expr) -> list[ast.expr]:
    """The types inside the brackets."""
    if not isinstance(type_, ast.Subscript):
        return []
    inner = type_.slice.elts if isinstance(type_.slice, ast.Tuple) else [type_.slice]
    return [t for t in inner if not (isinstance(t, ast.Constant) and t.value is ...)]


def fits(value: Any, type_: ast.expr | None) -> bool:
    return type_ is None or any(fits_one(value, t) for t in alternatives(type_))


def fits_one(value: Any, type_: ast.expr) -> bool:
    name = word(type_)
    if name == "None":
        return value is None
    if name == "int":
        try:
            return -(2**63) <= operator.index(value) < 2**63
        except TypeError:
            return False
    if name == "float":
        return hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    if name == "bool":
        return isinstance(value, bool)
    if name == "str":
        return isinstance(value, str)
    if name == "Callable":
        return callable(value)
    if name == "ndarray":
        return hasattr(value, "__array_interface__")
    if name in SEQUENCES:
        return is_sequence(value) and all(fits(v, t) for t in items(type_)[:1] for v in value)
    owner = getattr(_core, name, None)
    return isinstance(value, owner) if isinstance(owner, type) else True


def is_sequence(value: Any) -> bool:
    return isinstance(value, (Sequence, range)) and not isinstance(value, (str, bytes))


def expected(type_: ast.expr | None) -> str:
    """`a Tensor`, `an int or None`, `a sequence of Tensors`."""
    options = alternatives(type_)
    names = [word(t) for t in options]
    if set(names) >= NUMBER:
        keep = [i for i, n in enumerate(names) if n not in NUMBER and n != "ndarray"]
        options, names = [options[i] for i in keep], [names[i] for i in keep]
        return " or ".join([*(describe(t) for t in options), "a number"])
    return " or ".join(describe(t) for t in options) or "another value"


def describe(type_: ast.expr, many: bool = False) -> str:
    name = word(type_)
    if name in SEQUENCES:
        inner = " or ".join(describe(t, True) for s in items(type_)[:1] for t in alternatives(s))
        return f"{'sequences' if many else 'a sequence'} of {inner or 'values'}"
    one, several = WORDS.get(name, (f"{'an' if name[:1] in 'aeiou' else 'a'} {name}", f"{name}s"))
    return several if many else one


def got(value: Any, type_: ast.expr | None) -> str:
    """The kind of a value; of a sequence whose elements are at fault, the first of those too."""
    if value is None:
        return "None"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"{value}, which has more than 64 bits"
    kind = type(value).__name__
    for option in alternatives(type_):
        if word(option) in SEQUENCES and is_sequence(value):
            for inner in items(option)[:1]:
                for i, element in enumerate(value):
                    if not fits(element, inner):
                        return f"{kind} with {got(element, inner)} at {i}"
    return kind


def named_as(wanted: list[Parameter], kwargs: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """`axis` and `keepdims` under the names they stand for, and a name that is given twice that way."""
    names, out = {p.name for p in wanted}, dict(kwargs)
    for word, name in (("axis", "dim"), ("keepdims", "keepdim")):
        if word in out and word not in names and name in names:
            if name in out:
                return out, name
            out[name] = out.pop(word)
    return out, None


def bind(
    wanted: list[Parameter], args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[tuple[Parameter, Any]], str | None]:
    """The arguments in the order of the parameters up to the first problem of form, and that problem."""
    bound: list[tuple[Parameter, Any]] = []
    left = list(args)
    named, twice = named_as(wanted, kwargs)
    if twice:
        return bound, f"{twice}: expected one value, got two"
    for p in wanted:
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            bound += [(p, v) for v in left]
            left = []
        elif p.kind is inspect.Parameter.VAR_KEYWORD:
            named = {}
        elif left and p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            bound.append((p, left.pop(0)))
            if p.name in named:
                return bound, f"{p.name}: expected one value, got two"
        elif p.name in named:
            bound.append((p, named.pop(p.name)))
        elif p.required:
            return bound, f"{p.name}: expected {expected(p.type)}, got nothing"
    if left:
        most = sum(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and p.name != "self" for p in wanted)
        own = any(p.name == "self" for p in wanted)
        return bound, f"expected at most {most} argument{'s' * (most != 1)}, got {len(args) - own}"
    if named:
        names = ", ".join(p.name for p in wanted if p.name != "self") or "nothing"
        return bound, f"expected the arguments {names}, got {next(iter(named))}"
    return bound, None


def overloads(function: Any) -> list[list[Parameter]]:
    """All overloads; `self` is of the class that the function belongs to."""
    owner = ast.parse(function.__qualname__.split(".")[0], mode="eval").body
    found = [parameters(signature) for signature, *_ in function.__nb_signature__]
    return [[p._replace(type=owner) if p.name == "self" and not p.type else p for p in ps] for ps in found]


def strange_name(all_wanted: list[list[Parameter]], kwargs: dict[str, Any]) -> str | None:
    """What to say of a name given twice, or that no overload has: the names of the overload that is called by names."""
    for wanted in all_wanted:
        if twice := named_as(wanted, kwargs)[1]:
            return f"{twice}: expected one value, got two"
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for wanted in all_wanted for p in wanted):
        return None
    known = {p.name for wanted in all_wanted for p in wanted}
    strange = [k for k in kwargs if all(k in named_as(wanted, kwargs)[0] for wanted in all_wanted) and k not in known]
    if not strange:
        return None
    variadic = inspect.Parameter.VAR_POSITIONAL
    most = max(all_wanted, key=lambda wanted: (all(p.kind is not variadic for p in wanted), len(wanted)))
    names = ", ".join(p.name for p in most if p.name != "self") or "nothing"
    return f"expected the arguments {names}, got {strange[0]}"


def explain(function: Any, args: list[Any], kwargs: dict[str, Any], _: Any, text: str) -> str:
    """Of the overload that takes as many arguments and fits most of them, the first that does not fit."""
    all_wanted = overloads(function)
    if strange := strange_name(all_wanted, kwargs):
        return f"{operator_name(function)}: {strange}"
    best, problem = (False, -1), text
    for wanted in all_wanted:
        bound, form = bind(wanted, args, kwargs)
        well_formed = form is None
        wrong = next((i for i, (p, v) in enumerate(bound) if not fits(v, p.type)), None)
        if wrong is not None:
            p, v = bound[wrong]
            form = f"{p.name}: expected {expected(p.type)}, got {got(v, p.type)}"
        elif form is None:
            kinds = ", ".join(got(v, None) for v in [*args, *kwargs.values()])
            form = f"expected other arguments, got {kinds}"
        score = (well_formed, len(bound) if wrong is None else wrong)
        if score > best:
            best, problem = score, form
    return f"{operator_name(function)}: {problem}"


def name_argument(function: Any, args: list[Any], kwargs: dict[str, Any], refused: Any, text: str) -> str:
    """`shape: expected ...` of a reader, with the operator and the argument's own name in front."""
    name = operator_name(function)
    if function.__name__ == "__init__":  # the reader and the class have one name
        return text
    for wanted in overloads(function):
        for p, v in bind(wanted, args, kwargs)[0]:
            if v is refused and not name.startswith("_"):
                return f"{name}: {p.name}: {text.split(': ', 1)[-1]}"
    return text
