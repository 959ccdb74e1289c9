#!/bin/sh
# Installs the system packages that are missing, and says which. Usage: system_packages.sh <python>
set -eu

python=$1
[ -z "${VKML_SKIP_SYSTEM:-}" ] || exit 0

if ! command -v "$python" >/dev/null; then
    echo "error: no $python; vkml needs Python 3.10 or newer (make PYTHON=/path/to/python3)" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "error: $("$python" --version) is too old; vkml needs 3.10 or newer (make PYTHON=/path/to/python3)" >&2
    exit 1
fi
if ! command -v dpkg-query >/dev/null; then
    if [ ! -e build/.system-noted ]; then
        echo "note: not Debian or Ubuntu, so system packages are yours to install: a C++20 compiler, oneDNN, Highway," >&2
        echo "      fmt, Vulkan headers, lavapipe and the validation layers, GoogleTest" >&2
        mkdir -p build && touch build/.system-noted
    fi
    exit 0
fi

missing=
need() {
    case "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" in
        installed) ;;
        *) missing="$missing $1" ;;
    esac
}

command -v c++ >/dev/null || missing="$missing g++"
for package in libdnnl-dev libhwy-dev libfmt-dev libvulkan-dev mesa-vulkan-drivers vulkan-validationlayers \
    libgtest-dev libgmock-dev; do
    need $package
done

# The distribution splits its own Python into parts; any other one comes whole.
real=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))')
case "$real" in
    /usr/bin/*)
        version=$("$python" -c 'import sys; print("python3.%d" % sys.version_info[1])')
        "$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing $version-venv"
        "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
            missing="$missing $version-dev"
        ;;
esac

[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
    sudo=
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    sudo="sudo"
else
    echo "error: system packages are missing and there is neither root nor sudo. Ask for this, then run make again:" >&2
    echo "    sudo $install" >&2
    exit 1
fi
echo "Installing system packages:$missing"
$sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null || echo "note: apt-get update failed, going on" >&2
# shellcheck disable=SC2086
if ! $sudo env DEBIAN_FRONTEND=noninteractive $install </dev/null; then
    echo "error: this failed: $install" >&2
    exit 1
fi
