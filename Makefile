# make demo | test | test-torch | test-vulkan-validation | test-min-spec | test-asan | test-tsan | lint | bench | setup | clean
#   PYTHON=python3.12   the interpreter behind .venv     PRESET=debug   another build
#   DEVICE=vulkan       the device of demo and bench     ARGS=...       passed on to pytest or bench
#   VKML_SKIP_SYSTEM=1  never look at system packages

PYTHON ?= python3
PRESET ?= release
DEVICE ?=
ARGS ?=
JOBS ?= $(shell nproc)
WERROR := $(if $(CI),ON,OFF)

VENV := .venv
PY := $(VENV)/bin/python
BUILD := build/$(PRESET)
CONFIGURED := $(BUILD)/.configured-werror-$(WERROR)

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/python:$(CURDIR)
# ccache then answers from another worktree of the same repository.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.PHONY: all setup system build demo test test-cpp test-python test-torch test-vulkan-validation test-min-spec test-asan test-tsan checks lint format bench wheel clean

all: build

setup: system $(VENV)/.ready

system:
	@scripts/system_packages.sh $(PYTHON)

$(VENV)/.ready: requirements-dev.txt scripts/make_venv.sh | system
	@scripts/make_venv.sh $(PYTHON) $(VENV)

$(CONFIGURED): CMakePresets.json $(VENV)/.ready
	cmake --preset $(PRESET) -DVKML_WERROR=$(WERROR) -DPython_EXECUTABLE=$(CURDIR)/$(PY)
	@rm -f $(BUILD)/.configured-*; touch $@

build: setup $(CONFIGURED)
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	$(PY) examples/digits.py $(if $(DEVICE),--device $(DEVICE))

test: checks test-cpp test-python

test-cpp: build
	@scripts/with_lavapipe.sh ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

test-python: build
	@scripts/with_lavapipe.sh $(PY) -m pytest -n $(JOBS) -q $(ARGS)

test-torch: build $(VENV)/.torch
	@scripts/with_lavapipe.sh $(PY) -m pytest -n $(JOBS) -q $(ARGS)

# A CPU build is enough, where the pip configuration offers one.
$(VENV)/.torch: $(VENV)/.ready
	$(PY) -m pip install --quiet torch==2.13.0+cpu 2>/dev/null || $(PY) -m pip install --quiet torch==2.13.0
	@touch $@

# Runtime and conformance whole, one in eight of tests/ops; ARGS=--share=1 runs it all.
test-vulkan-validation: build
	@scripts/with_lavapipe.sh scripts/with_validation.sh $(BUILD) $(PY) -m pytest -n $(JOBS) -q \
	    tests/runtime tests/conformance tests/ops -k "vulkan and not torch" --share=8 $(ARGS)

# Limits clamped to what every Vulkan device has: 128 invocations, 16 KiB of shared memory. ARGS=--share=1 runs it all.
MIN_SPEC_TESTS := $(addprefix tests/ops/test_,matmul.py softmax.py layer_norm.py rms_norm.py batch_norm.py reduce.py \
    attention.py scan.py sort.py kda.py kda_gradients.py elementwise.py conv2d.py conv2d_paths.py pool2d.py linear.py \
    losses.py)
test-min-spec: build
	@VKML_MIN_SPEC=1 scripts/with_lavapipe.sh $(PY) -m pytest -n $(JOBS) -q $(MIN_SPEC_TESTS) \
	    -k "vulkan and not torch" --share=8 $(ARGS)

# AddressSanitizer, LeakSanitizer and UBSan: the C++ tests and one in eight of tests/ops. ThreadSanitizer: the C++ tests.
# Each is a build of its own; ARGS=--share=1 runs all of the Python tests.
test-asan:
	@$(MAKE) build test-cpp PRESET=asan-ubsan
	@scripts/with_lavapipe.sh scripts/with_sanitizer.sh build/asan-ubsan $(CURDIR)/$(PY) -m pytest -q \
	    tests/ops tests/test_*.py tests/conformance -k "not torch and not onnx" --share=8 $(ARGS)
test-tsan:
	@$(MAKE) build test-cpp PRESET=tsan

checks: $(VENV)/.ready
	@$(PY) scripts/check_layering.py
	@$(PY) scripts/check_operator_tests.py
	@$(PY) scripts/check_public_headers.py
	@$(PY) scripts/check_file_sizes.py

lint: build checks
	@scripts/lint.sh

format: setup
	@scripts/lint.sh --fix

bench: build
	$(PY) -m bench $(if $(DEVICE),--device $(DEVICE)) $(ARGS)

wheel: setup
	scripts/wheel.sh $(PYTHON) dist

clean:
	rm -rf build $(VENV) dist
	rm -f python/vkml/_core*.so python/vkml/_core.pyi
