#if __has_include("vkml/vkml.h")
#include "vkml/vkml.h"
#endif

int main() { return 0; }
