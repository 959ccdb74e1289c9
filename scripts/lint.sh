#!/bin/sh
# Formatting, lint and types. With --fix, rewrites what can be rewritten.
set -eu

sources=$(git ls-files --cached --others --exclude-standard '*.cpp' '*.h')
status=0
step() {
    echo "$*" | cut -c1-100
    "$@" || status=1
}

if [ "${1:-}" = --fix ]; then
    if [ -n "$sources" ]; then clang-format -i $sources; fi
    ruff format .
    ruff check --fix .
    exit 0
fi
if [ -n "$sources" ]; then step clang-format --dry-run --Werror $sources; fi
step ruff format --check .
step ruff check .
if [ -f python/vkml/__init__.py ]; then step mypy; fi
exit $status
