// Bits of GemmArgs::flags, for C++ and Slang.
#pragma once

#define VKML_GEMM_ACCUMULATE 1  // the sums are added to what c holds
#define VKML_GEMM_PADDED_A 2    // whole tiles can be read below the last row of a
#define VKML_GEMM_PADDED_B 4    // and right of the last column of b
