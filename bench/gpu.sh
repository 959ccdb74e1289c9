#!/bin/bash
# Builds, checks and times vkml on a GPU machine without network, in one call. It needs Python 3.10+ with numpy, pytest and
# nanobind, a C++20 compiler, cmake and ninja, and beside the sources the archive that scripts/pack_gpu_deps.py makes.
#   VKML_DEPS   that archive, or the folder it unpacks to (default: build/gpu-deps.tar.xz)
#   OUT         where results go (default: bench-results)        BUILD     build folder (default: build/gpu)
#   STEPS       of build check cost steady training matmul tune bench (default: all but tune)  AGAINST   the peer (default: torch:cuda where there is CUDA)
#   TESTS       what pytest runs (default: tests/ops tests/runtime -k vulkan)         ONLY   which cases the bench times
set -uo pipefail
cd "$(dirname "$0")/.."

deps=$(realpath "${VKML_DEPS:-build/gpu-deps.tar.xz}")
out=$(realpath -m "${OUT:-bench-results}") build=${BUILD:-build/gpu} steps=${STEPS:-build check cost steady training matmul bench}
mkdir -p "$out" build
if [ -f "$deps" ]; then
    rm -rf build/deps build/site && mkdir -p build/deps
    tar -xf "$deps" -C build/deps || exit 1
    deps=$PWD/build/deps/gpu-deps
fi
export VKML_KERNEL_CACHE=$deps/kernels CMAKE_PREFIX_PATH=$deps LD_LIBRARY_PATH=$deps/lib:${LD_LIBRARY_PATH:-}
if [ -d "$deps/wheels" ]; then
    "${PYTHON:-python3}" -m pip install -q --no-index --no-deps --upgrade --target build/site "$deps"/wheels/*.whl || exit 1
fi
export PYTHONPATH=$PWD/python:$PWD:$PWD/build/site:${PYTHONPATH:-} VKML_REQUIRE_VULKAN=1 PYTHONUNBUFFERED=1
export VKML_DEVICE=${VKML_DEVICE:-vulkan:0}
python=${PYTHON:-python3}
status=0

step() { # step <name> <command...>: runs it if asked for, with its output in $OUT/<name>.log
    local name=$1 begin=$SECONDS
    shift
    [[ " $steps " == *" ${name%%-*} "* ]] || return 0
    echo "== $name"
    "$@" 2>&1 | tee "$out/$name.log" | tail -n "${TAIL:-60}"
    local rc=${PIPESTATUS[0]}
    echo "== $name: exit $rc after $((SECONDS - begin)) s"
    [ "$rc" = 0 ] || status=1
    return "$rc"
}

configure() {
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DVKML_PYTHON=ON -DVKML_TESTS="${CPP_TESTS:-OFF}" \
        -DVKML_BENCH=ON -DVKML_EXAMPLES=OFF -DVKML_INSTALL=OFF -DVKML_VULKAN_HEADERS="$deps/include" \
        -DVKML_SLANGC="$deps/bin/slangc" -DVKML_SPIRV_TOOLS="$deps/bin" -DPython_EXECUTABLE="$(command -v "$python")"
}
make_all() { configure && cmake --build "$build" -j "$(nproc)"; }

step build make_all || exit 1
step build-report "$python" -m vkml
# shellcheck disable=SC2086
step check "$python" -m pytest -q -p no:cacheprovider ${TESTS:-tests/ops tests/runtime -k vulkan}
step cost "$python" -m bench.host_cost --device "$VKML_DEVICE" --program "$build/bench_host_cost" --out "$out/host_cost.json"
step steady "$python" -m bench.steady_state --device "$VKML_DEVICE"
if [ -z "${AGAINST+set}" ]; then
    AGAINST=$("$python" -c 'import torch; print("torch:cuda" if torch.cuda.is_available() else "torch")' 2>/dev/null)
fi
step training "$python" -m bench.training --device "$VKML_DEVICE" ${AGAINST:+--against $AGAINST} --out "$out/training.json"
step matmul "$python" -m bench.matmul --device "$VKML_DEVICE" ${AGAINST:+--against $AGAINST} ${ONLY_MATMUL:+--only $ONLY_MATMUL} --out "$out"
step tune "$python" -m vkml tune --device "$VKML_DEVICE"
step bench "$python" -m bench --device "$VKML_DEVICE" ${AGAINST:+--against $AGAINST} ${ONLY:+--only $ONLY} --out "$out"
exit $status
