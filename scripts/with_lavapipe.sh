#!/bin/sh
# Runs a command with Mesa's lavapipe as the only Vulkan driver, so that tests mean the same on every machine.
# VKML_TEST_DRIVER names another driver file, or `system` for whatever is installed.
set -eu

driver=${VKML_TEST_DRIVER:-}
if [ -z "$driver" ]; then
    machine=$(uname -m)
    for folder in $(echo "${XDG_DATA_DIRS:-}" | tr : ' ') /usr/local/share /usr/share /etc; do
        for file in "$folder/vulkan/icd.d/lvp_icd.$machine.json" "$folder/vulkan/icd.d/lvp_icd.json"; do
            if [ -z "$driver" ] && [ -f "$file" ]; then driver=$file; fi
        done
    done
    if [ -z "$driver" ]; then
        echo "error: no lavapipe; install mesa-vulkan-drivers, or set VKML_TEST_DRIVER" >&2
        exit 1
    fi
fi
if [ "$driver" != system ]; then
    export VK_ICD_FILENAMES="$driver" VK_DRIVER_FILES="$driver"
fi
# Tests that need a Vulkan device fail without one instead of skipping.
export VKML_REQUIRE_VULKAN=1
# Several test processes share the cores: two threads still exercise OpenMP, and waiting ones must not spin.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
exec "$@"
