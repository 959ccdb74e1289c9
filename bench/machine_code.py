"""python -m bench.machine_code <pipeline cache file>... : what NVIDIA's driver made of the busiest loop of a kernel.

A fresh VKML_PIPELINE_CACHE folder for each variant holds one pipeline each. The cache is zstd frames; after "NVuc" a
table names the code's place. Needs zstd, and nvdisasm (the wheel nvidia-cuda-nvdisasm has it) on PATH or in NVDISASM.
One line for each file: instructions of the loop, cycles that its control words ask for when nothing waits, FMAs that
read three registers (two are free), instructions that wait for memory, and counts of the rest. --loop prints the loop.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FRAME, TABLE, CODE_SECTION = b"\x28\xb5\x2f\xfd", b"NVuc", 1


class Instruction(NamedTuple):
    address: int
    text: str
    control: int

    @property
    def name(self) -> str:
        return re.sub(r"^@!?U?P\d+ ", "", self.text).split()[0]

    @property
    def stall(self) -> int:
        return (self.control >> 41) & 15

    @property
    def waits(self) -> bool:
        return (self.control >> 52) & 63 != 0


def frames(data: bytes) -> Iterator[bytes]:
    at = data.find(FRAME)
    while at >= 0:
        yield subprocess.run(["zstd", "-dc"], input=data[at:], capture_output=True, check=False).stdout
        at = data.find(FRAME, at + 4)


def machine_code(cache: Path) -> bytes:
    """The longest code section in the cache."""
    longest = b""
    for frame in frames(cache.read_bytes()):
        start = frame.find(TABLE)
        for row in range(1, 40):
            entry = start + 32 * row
            if start < 0 or entry + 12 > len(frame):
                break
            kind, size, offset = struct.unpack_from("<3I", frame, entry)
            if kind == CODE_SECTION:
                longest = max(longest, frame[start + offset : start + offset + size], key=len)
                break
    return longest


def disassemble(code: bytes) -> list[Instruction]:
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        tool = os.environ.get("NVDISASM", "nvdisasm")
        shown = subprocess.run([tool, "--binary", "SM90", file.name], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*/\*([0-9a-f]+)\*/\s+(.*?);", shown, re.M)
    at = [(int(address, 16), text.strip()) for address, text in found]
    return [Instruction(address, text, struct.unpack_from("<Q", code, address + 8)[0]) for address, text in at]


def busiest_loop(code: list[Instruction]) -> list[Instruction]:
    """The shortest of the loops with most FMAs."""
    best: list[Instruction] = []
    rank = (0, 0)
    for i in code:
        target = re.search(r"\bBRA\b.*0x([0-9a-f]+)", i.text)
        if not target or int(target[1], 16) >= i.address:
            continue
        body = [x for x in code if int(target[1], 16) <= x.address <= i.address]
        mine = (sum(x.name.startswith("FFMA") for x in body), -len(body))
        if mine > rank:
            best, rank = body, mine
    return best


def three_reads(loop: list[Instruction]) -> int:
    """FMAs whose operands all come from the register file: none was kept from the instruction before (.reuse)."""
    kept: dict[int, str] = {}
    count = 0
    for i in loop:
        if not i.name.startswith("FFMA"):
            kept = {}
            continue
        operands = [o.strip() for o in i.text.split(",")[1:4]]
        names = [re.sub(r"\.reuse|[-|]", "", o) for o in operands]
        reads = {name for slot, name in enumerate(names) if re.match(r"R\d", name) and kept.get(slot) != name}
        count += len(reads) == 3
        kept = {slot: names[slot] for slot, o in enumerate(operands) if ".reuse" in o}
    return count


def main() -> None:
    files = [Path(a) for a in sys.argv[1:] if not a.startswith("--")]
    if not files:
        sys.exit(__doc__)
    for file in files:
        loop = busiest_loop(disassemble(machine_code(file)))
        if "--loop" in sys.argv:
            print("\n".join(f"{i.address:05x} {i.stall:2} {'wait' if i.waits else '    '} {i.text}" for i in loop))
        rest = " ".join(f"{name} {count}" for name, count in Counter(i.name for i in loop).most_common(12))
        cycles, waits = sum(i.stall for i in loop), sum(i.waits for i in loop)
        print(
            f"{file}: {len(loop)} instructions, {cycles} cycles, {three_reads(loop)} of three reads, {waits} waits;",
            rest,
        )


if __name__ == "__main__":
    main()
