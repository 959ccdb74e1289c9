"""What the build does with a SPIR-V module after spirv-opt: addresses in full, and checks of steps and alignments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

MAGIC = 0x07230203
HEADER_WORDS = 5
BOUND = 3  # the header word above all ids

OP_ENTRY_POINT = 15
OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_TYPE_POINTER = 21, 22, 23, 32
OP_CONSTANT, OP_FUNCTION, OP_LOAD, OP_STORE = 43, 54, 61, 62
OP_ACCESS_CHAIN, OP_PTR_ACCESS_CHAIN, OP_DECORATE = 65, 67, 71
OP_CONVERT_PTR_TO_U, OP_CONVERT_U_TO_PTR, OP_SNEGATE, OP_IADD, OP_IMUL = 117, 120, 126, 128, 132
ARRAY_STRIDE, PHYSICAL_STORAGE_BUFFER = 6, 5349
ALIGNED = 0x2  # the bit in the memory operand mask that a literal follows

Words = tuple[int, ...]


def words_of(code: bytes) -> Words:
    if len(code) < 4 * HEADER_WORDS or len(code) % 4 or struct.unpack_from("<I", code)[0] != MAGIC:
        raise ValueError("not a SPIR-V module")
    return struct.unpack(f"<{len(code) // 4}I", code)


def instructions(words: Words) -> Iterator[tuple[int, Words]]:
    """(opcode, operands) in order."""
    at = HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        yield words[at] & 0xFFFF, words[at + 1 : at + count]
        at += count


# Addresses ------------------------------------------------------------------------------------------------------------


@dataclass
class Facts:
    """What the address pass has to know of a module."""

    wide: set[int] = field(default_factory=set)  # types of 64-bit integers
    unsigned: int = 0  # the unsigned one
    pointers: set[int] = field(default_factory=set)  # types of pointers into device memory
    strides: dict[int, int] = field(default_factory=dict)  # pointer type -> bytes from one element to the next
    constants: dict[int, int] = field(default_factory=dict)  # value of an unsigned 64-bit constant -> id
    small: set[int] = field(default_factory=set)  # 64-bit constants below 2^16
    types: dict[int, int] = field(default_factory=dict)  # value -> its type, of the types above

    def note(self, op: int, operands: Words) -> None:
        if op == OP_DECORATE and len(operands) == 3 and operands[1] == ARRAY_STRIDE:
            self.strides[operands[0]] = operands[2]
        elif op == OP_TYPE_INT and operands[1] == 64:
            self.wide.add(operands[0])
            if operands[2] == 0:
                self.unsigned = operands[0]
        elif op == OP_TYPE_POINTER and operands[1] == PHYSICAL_STORAGE_BUFFER:
            self.pointers.add(operands[0])
        elif len(operands) >= 2 and (operands[0] in self.wide or operands[0] in self.pointers):
            self.types[operands[1]] = operands[0]
            if op == OP_CONSTANT and operands[0] in self.wide:
                value = operands[2] | operands[3] << 32
                if operands[0] == self.unsigned:
                    self.constants.setdefault(value, operands[1])
                if value < 1 << 16:
                    self.small.add(operands[1])

    def reaches_far(self, op: int, operands: Words) -> bool:
        return (
            op == OP_PTR_ACCESS_CHAIN
            and self.types.get(operands[2]) in self.pointers
            and self.types.get(operands[3]) in self.wide
            and operands[3] not in self.small
        )


def full_addresses(code: bytes) -> bytes:
    """Writes every step of a device pointer by a 64-bit index as arithmetic on its address.

    NVIDIA's driver 580 takes the bytes of such a step modulo 2^32: element 2^30 of a float tensor was element 0.
    """
    words = words_of(code)
    facts = Facts()
    for op, operands in instructions(words):
        facts.note(op, operands)
    far = [operands for op, operands in instructions(words) if facts.reaches_far(op, operands)]
    if not far:
        return code
    next_id = words[BOUND]
    declarations: list[int] = []

    def new_id() -> int:
        nonlocal next_id
        next_id += 1
        return next_id - 1

    if not facts.unsigned:
        facts.unsigned = new_id()
        declarations += instruction(OP_TYPE_INT, facts.unsigned, 64, 0)
    for stride in sorted({facts.strides[facts.types[operands[2]]] for operands in far} - facts.constants.keys()):
        facts.constants[stride] = new_id()
        declarations += instruction(OP_CONSTANT, facts.unsigned, facts.constants[stride], stride, 0)

    out = list(words[:HEADER_WORDS])
    for op, operands in instructions(words):
        if op == OP_FUNCTION and declarations:
            out += declarations
            declarations = []
        if not facts.reaches_far(op, operands):
            out += instruction(op, *operands)
            continue
        result_type, result, base, index, *members = operands
        base_type = facts.types[base]
        address, step, moved = new_id(), new_id(), new_id()
        element = new_id() if members else result
        out += instruction(OP_CONVERT_PTR_TO_U, facts.unsigned, address, base)
        out += instruction(OP_IMUL, facts.unsigned, step, index, facts.constants[facts.strides[base_type]])
        out += instruction(OP_IADD, facts.unsigned, moved, address, step)
        out += instruction(OP_CONVERT_U_TO_PTR, base_type, element, moved)
        if members:
            out += instruction(OP_ACCESS_CHAIN, result_type, result, element, *members)
    out[BOUND] = next_id
    return struct.pack(f"<{len(out)}I", *out)


def instruction(op: int, *operands: int) -> list[int]:
    return [(len(operands) + 1) << 16 | op, *operands]


def negated_steps(code: bytes) -> list[str]:
    """One line per step of a pointer by a negated 32-bit unsigned integer: Slang's `p - n`.

    NVIDIA's driver 580 takes it as unsigned, 2^32 - n elements ahead; Mesa as signed.
    """
    unsigned, negated, problems = set(), set(), []
    for op, operands in instructions(words_of(code)):
        if op == OP_TYPE_INT and operands[1:] == (32, 0):
            unsigned.add(operands[0])
        elif op == OP_SNEGATE and operands[0] in unsigned:
            negated.add(operands[1])
        elif op == OP_PTR_ACCESS_CHAIN and operands[3] in negated:
            problems.append("a pointer minus a 32-bit unsigned integer; make that uint64_t")
    return problems


# Alignment ------------------------------------------------------------------------------------------------------------


def unaligned_vectors(code: bytes) -> list[str]:
    """One line per OpLoad or OpStore of a vector of more than 4 bytes that states an alignment of 4 or less."""
    scalars: dict[int, int] = {}  # type id -> bytes
    vectors: dict[int, tuple[int, int]] = {}  # type id -> (components, bytes)
    pointees: dict[int, int] = {}  # pointer type id -> type id
    types: dict[int, int] = {}  # value id -> type id
    entries, problems = [], []
    for op, operands in instructions(words_of(code)):
        if op in (OP_TYPE_INT, OP_TYPE_FLOAT):
            scalars[operands[0]] = operands[1] // 8
        elif op == OP_TYPE_VECTOR and operands[1] in scalars:
            vectors[operands[0]] = (operands[2], operands[2] * scalars[operands[1]])
        elif op == OP_TYPE_POINTER:
            pointees[operands[0]] = operands[2]
        elif op == OP_ENTRY_POINT:
            raw = struct.pack(f"<{len(operands) - 2}I", *operands[2:])
            entries.append(raw.split(b"\0", 1)[0].decode())
        elif op == OP_STORE:
            vector = vectors.get(pointees.get(types.get(operands[0], 0), 0))
            note_unaligned(problems, "store", vector, operands[2:])
        elif len(operands) >= 2 and (operands[0] in pointees or operands[0] in vectors):
            types[operands[1]] = operands[0]
            if op == OP_LOAD:
                note_unaligned(problems, "load", vectors.get(operands[0]), operands[3:])
    return [f"entry {', '.join(entries)}: {p}" for p in problems]


def note_unaligned(problems: list[str], what: str, vector: tuple[int, int] | None, memory: Words) -> None:
    if vector and vector[1] > 4 and len(memory) >= 2 and memory[0] & ALIGNED and memory[1] <= 4:
        problems.append(f"{what} of a {vector[1]}-byte vector of {vector[0]} says Aligned {memory[1]}")
