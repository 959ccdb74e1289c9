#!/bin/sh
# Runs vkml_tests, then a pytest command, under the Vulkan validation layer with synchronization validation.
# Any message fails. Usage: with_validation.sh <build> <pytest command...>
set -eu

build=$1
shift
logs=$PWD/build/validation
rm -rf "$logs"
mkdir -p "$logs"
export VKML_VALIDATION_LOGS="$logs" VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export PYTHONPATH="$PWD/scripts:${PYTHONPATH:-}"

if [ -x "$build/vkml_tests" ]; then
    settings=$(python -c 'import validation_plugin as v; print(v.write_settings("vkml_tests"))')
    VK_LAYER_SETTINGS_PATH="$settings" "$build/vkml_tests" --gtest_brief=1
    if grep -q . "$logs/vkml_tests.txt" 2>/dev/null; then
        cat "$logs/vkml_tests.txt"
        echo "error: validation messages from vkml_tests" >&2
        exit 1
    fi
fi
"$@" -p validation_plugin
# Whatever came too late for a test to be blamed, such as leaks reported at exit.
if cat "$logs"/*.txt 2>/dev/null | grep .; then
    echo "error: validation messages outside any test" >&2
    exit 1
fi
