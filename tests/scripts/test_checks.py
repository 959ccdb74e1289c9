"""The checks of scripts/ and cmake/ must fail on a bad example and stay silent on a good one."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "cmake")]

import check_file_sizes  # noqa: E402
import check_layering  # noqa: E402
import check_operator_tests  # noqa: E402
import check_public_headers  # noqa: E402
import compile_kernel  # noqa: E402
import spirv_module  # noqa: E402


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# Layering


@pytest.mark.parametrize(
    ("source", "included"),
    [
        ("vkml/core/tensor.h", "vkml/runtime/stream.h"),
        ("vkml/core/tensor.h", "../ops/matmul/matmul.h"),
        ("vkml/runtime/stream.cpp", "vkml/autograd/node.h"),
        ("vkml/autograd/engine.cpp", "vkml/ops/elementwise/add.h"),
        ("vkml/ops/softmax/softmax.cpp", "vkml/ops/matmul/matmul_py.cpp"),
        ("vkml/ops/softmax/softmax.cpp", "python/src/glue.h"),
        ("vkml/ops/softmax/softmax.cpp", "vulkan/vulkan.hpp"),
        ("vkml/runtime/stream.h", "vulkan/vulkan.h"),
        ("vkml/ops/softmax/softmax.cpp", "vkml/vkml.h"),
    ],
)
def test_layering_reports_an_upward_include(tmp_path: Path, source: str, included: str) -> None:
    root = tree(tmp_path, {"vkml/ops/matmul/matmul.h": "", source: f'#pragma once\n#include "{included}"\n'})
    assert len(problems := check_layering.check(root)) == 1
    assert problems[0].startswith(f'{source}:2: includes "{included}"')
    script = [sys.executable, ROOT / "scripts/check_layering.py", root]
    assert subprocess.run(script, check=False, stdout=subprocess.DEVNULL).returncode == 1


def test_layering_accepts_downward_includes(tmp_path: Path) -> None:
    files = {
        "vkml/core/tensor.h": '#include <span>\n#include "vkml/core/dtype.h"\n',
        "vkml/runtime/vulkan/device.cpp": '#include <vulkan/vulkan.hpp>\n#include "vkml/runtime/backend.h"\n',
        "vkml/autograd/node.h": '#include "vkml/core/tensor.h"\n',
        "vkml/ops/kda/kda.cpp": '#include "vkml/ops/matmul/matmul.h"\n#include "vkml/autograd/node.h"\n',
        "vkml/ops/kda/kda_py.cpp": '#include "python/src/glue.h"\n',
        "python/src/glue.h": '#include "vkml/vkml.h"\n',
        "vkml/vkml.h": '#include "vkml/ops/kda/kda.h"\n',
    }
    assert check_layering.check(tree(tmp_path, files)) == []


# Operator tests, file sizes


def test_operator_without_a_test_is_reported(tmp_path: Path) -> None:
    root = tree(
        tmp_path, {"vkml/ops/softmax/softmax.cpp": "", "vkml/ops/kda/kda.cpp": "", "tests/ops/test_kda_x.py": ""}
    )
    assert check_operator_tests.check(root) == ["vkml/ops/softmax: no test, expected tests/ops/test_softmax.py"]
    script = [sys.executable, ROOT / "scripts/check_operator_tests.py", root]
    assert subprocess.run(script, check=False, stdout=subprocess.DEVNULL).returncode == 1
    tree(root, {"tests/ops/test_softmax.py": ""})
    assert check_operator_tests.check(root) == []


def test_long_file_is_reported(tmp_path: Path) -> None:
    root = tree(tmp_path, {"vkml/core/a.cpp": "\n" * 501, "tests/test_b.py": "\n" * 501, "vkml/core/b.cpp": "\n" * 500})
    assert check_file_sizes.check(root) == [
        "vkml/core/a.cpp: has 501 lines, more than 500",
        "tests/test_b.py: has 501 lines, more than 500",
    ]
    script = [sys.executable, ROOT / "scripts/check_file_sizes.py", root]
    assert subprocess.run(script, check=False, stdout=subprocess.DEVNULL).returncode == 1


# Public headers


def test_public_headers_are_those_named_after_their_folder(tmp_path: Path) -> None:
    files = {
        "vkml/vkml.h": '#include "vkml/operators.h"\n',
        "vkml/core/tensor.h": "",
        "vkml/ops/softmax/softmax.h": '#include "vkml/core/tensor.h"\n',
        "vkml/ops/softmax/rows.h": '#include "vkml/ops/softmax/softmax_kernel.h"\n',
        "vkml/ops/softmax/softmax_kernel.h": '#include "vkml/ops/softmax/softmax.spv.h"\n',
    }
    root = tree(tmp_path, files)
    assert set(check_public_headers.public_headers(root)) == {
        "vkml/vkml.h",
        "vkml/core/tensor.h",
        "vkml/ops/softmax/softmax.h",
    }
    assert check_public_headers.check(root) == []
    tree(root, {"vkml/ops/softmax/softmax.h": '#include "vkml/ops/softmax/rows.h"\n', "vkml/ops/kda/x.cpp": ""})
    assert check_public_headers.check(root) == [
        "vkml/ops/kda: no public header, expected vkml/ops/kda/kda.h",
        "vkml/ops/softmax/rows.h: is public, but includes the internal vkml/ops/softmax/softmax_kernel.h",
    ]
    script = [sys.executable, ROOT / "scripts/check_public_headers.py", root]
    assert subprocess.run(script, check=False, stdout=subprocess.DEVNULL).returncode == 1


# Kernel directives


def test_directive_expands_elements_and_passes_flags() -> None:
    text = "softmax ELEMENT=F32,BF16 as=soft N=3 -fp-mode precise -O1 M=(1) -capability x"
    directive = compile_kernel.parse_directive(text, "a.slang:1")
    modules = compile_kernel.modules_of("vkml/a.slang", [directive])
    assert [(m.symbol, m.element, m.output) for m in modules] == [
        ("soft", "F32", "vkml/a.soft.F32.spv"),
        ("soft", "BF16", "vkml/a.soft.BF16.spv"),
    ]
    flags = ["-fp-mode", "precise", "-O1", "-capability", "x"]
    assert modules[1].command == ["-entry", "softmax", "-DN=3", "-DM=(1)", "-DELEMENT=BF16", *flags]


@pytest.mark.parametrize("text", ["", "soft max", "softmax ELEMENT=F31", "softmax ELEMENT=", "softmax as=a-b"])
def test_bad_directive_names_file_and_line(text: str) -> None:
    with pytest.raises(compile_kernel.KernelError, match=r"a\.slang:7"):
        compile_kernel.parse_directive(text, "a.slang:7")


def test_two_files_cannot_share_a_symbol(tmp_path: Path) -> None:
    kernel = "//! kernel softmax ELEMENT=F32\n"
    root = tree(tmp_path, {"vkml/a.slang": kernel, "vkml/b.slang": kernel})
    script = [sys.executable, ROOT / "cmake/compile_kernel.py", "plan", "--root", root, "--generated", root / "g"]
    command = [*script, "--out", root / "k.cmake", root / "vkml/a.slang", root / "vkml/b.slang"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "vkml/b.slang: symbol 'softmax' is taken by vkml/a.slang" in done.stderr


def test_closure_follows_imports_and_includes(tmp_path: Path) -> None:
    files = {
        "vkml/ops/x/x.slang": 'import element;\n#include "x_args.h"\nimport missing;\n',
        "vkml/ops/x/x_args.h": '#include "vkml/core/shared.h"\n',
        "vkml/ops/x/unrelated.slang": "",
        "vkml/core/shared.h": "",
        "vkml/runtime/slang/element.slang": "__include half_types;\n",
        "vkml/runtime/slang/half_types.slang": "",
    }
    found = compile_kernel.closure(tree(tmp_path, files), "vkml/ops/x/x.slang")
    assert found == sorted(set(files) - {"vkml/ops/x/unrelated.slang"})


# The alignment check


def spirv(components: int, bits: int, alignment: int, store: bool = False) -> bytes:
    """A module whose one memory access is of a vector, with the operand Aligned."""
    code = [0x07230203, 0x10500, 0, 20, 0]

    def op(opcode: int, *operands: int) -> None:
        code.extend([(len(operands) + 1) << 16 | opcode, *operands])

    op(15, 5, 9, *struct.unpack("<2I", b"main\0\0\0\0"))  # OpEntryPoint GLCompute %9 "main"
    op(22, 1, bits)  # %1 = OpTypeFloat
    op(23, 2, 1, components)  # %2 = OpTypeVector
    op(32, 3, 5349, 2)  # %3 = OpTypePointer PhysicalStorageBuffer %2
    op(55, 3, 4)  # %4 = OpFunctionParameter %3
    if store:
        op(1, 2, 5)  # %5 = OpUndef %2
        op(62, 4, 5, 2, alignment)
    else:
        op(61, 2, 5, 4, 2, alignment)
    return struct.pack(f"<{len(code)}I", *code)


@pytest.mark.parametrize("store", [False, True])
def test_unaligned_vector_access_is_reported(store: bool) -> None:
    what = "store" if store else "load"
    expected = [f"entry main: {what} of a 16-byte vector of 4 says Aligned 4"]
    assert spirv_module.unaligned_vectors(spirv(4, 32, 4, store)) == expected
    assert spirv_module.unaligned_vectors(spirv(4, 16, 2, store)) != []
    assert spirv_module.unaligned_vectors(spirv(4, 32, 16, store)) == []
    assert spirv_module.unaligned_vectors(spirv(2, 16, 2, store)) == []  # four bytes: one access either way


@pytest.mark.parametrize("signed", [0, 1])
def test_step_by_a_negated_unsigned_integer_is_reported(signed: int) -> None:
    op = spirv_module.instruction
    words = [0x07230203, 0x10600, 0, 20, 0]
    words += op(21, 1, 32, signed)  # %1 = OpTypeInt
    words += op(22, 2, 32) + op(32, 3, 5349, 2)  # %3: a pointer to floats in device memory
    words += op(55, 3, 4) + op(55, 1, 5)  # parameters
    words += op(126, 1, 6, 5)  # %6 = OpSNegate %5
    words += op(67, 3, 7, 4, 6)  # %7 = OpPtrAccessChain %4 %6
    assert len(spirv_module.negated_steps(struct.pack(f"<{len(words)}I", *words))) == 1 - signed


def chain(index_bits: int, constant: int | None = None, members: tuple[int, ...] = ()) -> bytes:
    """A function that steps a float pointer by an index, a constant or the sum of two."""
    step = spirv_module.instruction
    words = [0x07230203, 0x10600, 0, 60, 0]
    words += step(71, 4, 6, 4)  # OpDecorate %4 ArrayStride 4
    words += step(22, 1, 32) + step(21, 2, index_bits, 0) + step(32, 4, 5349, 1)  # float, uint, pointer to float
    value = [7] if constant is None else [constant]
    words += step(43, 2, 10, *value, *[0] * (index_bits == 64))  # %10, the constant
    words += step(54, 1, 20, 0, 30) + step(55, 4, 21) + step(248, 22)  # function, its pointer, label
    index = 10
    if constant is None:
        words += step(128, 2, 23, 10, 10)  # %23 = %10 + %10
        index = 23
    words += step(67, 4, 24, 21, index, *members) + step(61, 1, 25, 24, 2, 4) + step(253) + step(56)
    return struct.pack(f"<{len(words)}I", *words)


def test_wide_steps_of_pointers_become_arithmetic() -> None:
    code = spirv_module.full_addresses(chain(64))
    words = spirv_module.words_of(code)
    found = dict(spirv_module.instructions(words))
    assert 67 not in found
    pointer_to_integer, multiply, add, integer_to_pointer = (found[op] for op in (117, 132, 128, 120))
    constants = {o[1]: o[2] for op, o in spirv_module.instructions(words) if op == 43}
    assert pointer_to_integer[2] == 21
    assert multiply[2] == 23
    assert constants[multiply[3]] == 4
    assert add[2:] == (pointer_to_integer[1], multiply[1])
    assert integer_to_pointer == (4, 24, add[1])
    assert words[3] > max(pointer_to_integer[1], multiply[1], add[1], multiply[3])
    members = spirv_module.full_addresses(chain(64, members=(10,)))
    assert next(o for op, o in spirv_module.instructions(spirv_module.words_of(members)) if op == 65)[3:] == (10,)


@pytest.mark.parametrize("code", [chain(32), chain(64, 3)], ids=["32-bit index", "small constant"])
def test_near_steps_of_pointers_stay(code: bytes) -> None:
    assert spirv_module.full_addresses(code) == code


def test_no_spirv_is_refused() -> None:
    with pytest.raises(ValueError, match="not a SPIR-V module"):
        spirv_module.full_addresses(b"spirv")
