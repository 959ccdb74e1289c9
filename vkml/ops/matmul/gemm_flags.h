// Bits of GemmArgs::flags, for C++ and Slang.
#pragma once

#define VKML_GEMM_PADDED_A 1  // whole tiles can be read below the last row of a
#define VKML_GEMM_PADDED_B 2  // and right of the last column of b
