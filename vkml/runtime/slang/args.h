// Included by C++ and by Slang: what an argument struct needs to read the same in both. Layout is scalar: members lie
// as in C++.
#pragma once
#ifdef __cplusplus
#include <cstdint>

#include "vkml/core/storage.h"
/// A pointer to elements in device memory: an address to C++, a typed pointer to Slang.
#define VKML_PTR(T) ::vkml::Address
#else
#define VKML_PTR(T) T*
#endif
