"""Prints what the driver says of the product kernels: registers, spills, shared memory. Needs VKML_VULKAN_DEBUG=1.

VKML_VULKAN_DEBUG=1 python -m bench.registers
"""

import numpy as np

import vkml


def main() -> None:
    rng = np.random.default_rng(0)
    for n in (1024, 4096):
        for dtype in ("float32", "bfloat16"):
            a = vkml.tensor(rng.standard_normal((n, n)), dtype=dtype, device="vulkan")
            vkml.matmul(a, a).sum().item()


if __name__ == "__main__":
    main()
