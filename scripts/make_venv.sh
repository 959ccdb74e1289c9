#!/bin/sh
# Makes the virtual environment with the pinned requirements. Usage: make_venv.sh <python> <folder>
set -eu

python=$1 venv=$2
if ! "$venv/bin/python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "Creating $venv with $("$python" --version)"
    rm -rf "$venv"
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv "$venv"
    elif "$python" -m virtualenv --version >/dev/null 2>&1; then
        "$python" -m virtualenv --quiet "$venv"
    elif "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --without-pip "$venv"
        "$python" -m pip --python "$venv/bin/python" install --quiet pip
    else
        echo "error: $python has none of ensurepip, virtualenv and pip; install python3-venv or pip for it" >&2
        exit 1
    fi
fi
echo "Installing requirements-dev.txt"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt </dev/null
touch "$venv/.ready"
