#!/bin/sh
# Runs a command, such as pytest, with the Python module of a sanitizer build: with_sanitizer.sh <build> <command...>
# Python itself and the drivers leak and are not ours (cmake/lsan.supp).
set -eu

build=$(realpath "$1")
shift
runtime=$("${CXX:-c++}" -print-file-name=libasan.so)
export PYTHONPATH="$build/python:$PWD" PYTHONMALLOC=malloc
export ASAN_OPTIONS="detect_leaks=1:detect_odr_violation=0:handle_segv=0:${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$PWD/cmake/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
# The interpreter is not instrumented, so the runtime has to be there before it; libstdc++ too, whose exceptions it wraps.
LD_PRELOAD="$runtime $("${CXX:-c++}" -print-file-name=libstdc++.so.6)" exec "$@"
