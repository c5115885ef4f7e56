# Everything happens in a virtual environment, .venv, made at the first use. Nothing is done twice:
# files in .venv/stamps say what is up to date.

ENVIRONMENT ?= .venv
PYTEST_FLAGS ?=
SOAK_FLAGS ?=
# Tests wait more than they compute.
PYTEST_PROCESSES ?= $(shell expr 1 + $$(nproc))
DEMO_FLAGS ?= --model lenet --dataset digits --kv-store p3 --epochs 20 --lr-schedule cosine

BIN := $(ENVIRONMENT)/bin
STAMPS := $(ENVIRONMENT)/stamps
# Without bytecode of everything installed: Python keeps it for what is imported. It does so whatever
# the user's own setting, as tests start hundreds of processes that import the same files.
INSTALL := $(BIN)/python -m pip install -qq --no-deps --no-compile
unexport PYTHONDONTWRITEBYTECODE
# A process takes whole files, whose tests share jobs. More threads than cores only disturb each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(PYTEST_PROCESSES) --dist loadfile

# One by one for .pre-commit-config.yaml.
LINTS := lint-style lint-types lint-rooms lint-format

CPP := $(shell find kvstore_ext/csrc -name '*.h' -o -name '*.inc' -o -name '*.cc')
CPP_TESTS := $(shell find tests -name '*.h' -o -name '*.cc')

# Horovod, compiled once for MXNet alone and in an environment of its own.
PEERS := $(ENVIRONMENT)-peers
HOROVOD := horovod==0.28.1
HOROVOD_FLAGS := HOROVOD_WITH_MXNET=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 \
    HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1

.PHONY: help demo test test-all soak chaos packages-test packages-test-all sanitize fuzz coverage lint \
    $(LINTS) format docs wheel clean peers
# pip cannot work on one environment twice at a time.
.NOTPARALLEL:

help:
	@echo "make demo    train a small model on handwritten digits: 2 workers, 2 servers, p3"
	@echo "make test    run the tests; PYTEST_FLAGS='tests/launch -x' for some of them"
	@echo "make test-all  run them with every model through every store, in every way"
	@echo "make soak    whether a job of 16 workers holds for a million rounds; says how long that takes"
	@echo "make chaos   lose a training's processes and hosts again and again, as root (20 minutes)"
	@echo "make lint    check style, types, and which room imports which"
	@echo "make sanitize  run the core's own tests under two sanitizers, and a minute of make fuzz"
	@echo "make fuzz    ten million runs of each fuzz target (5 hours), from where it was stopped;"
	@echo "             FUZZ_SECONDS=600 for that long at most"
	@echo "make coverage  write docs/coverage.md: which lines the tests run (some 40 minutes)"
	@echo "make format  put C++ into that style"
	@echo "make docs    build the documents into build/site"
	@echo "make wheel   build a wheel that runs on other hosts, into dist/"
	@echo "make peers   compile Horovod, to compare with, in an environment of its own (minutes)"
	@echo "make figure-readme  measure and draw what README shows, as root, in some 27 minutes"
	@echo "make figure-NAME  measure and draw another figure of docs/figures.md, as root, in hours"
	@echo "make clean   remove the environment and what was built"
	@echo "PYTHON=python3.10 chooses the interpreter, 3.8 to 3.12; ENVIRONMENT=.venv the directory."

demo: $(STAMPS)/demo $(STAMPS)/package
	$(BIN)/python tools/launch.py -n 2 -s 2 $(BIN)/python examples/train_image.py $(DEMO_FLAGS)

test: $(STAMPS)/test $(STAMPS)/package packages-test
	$(strip $(PYTEST) $(PYTEST_FLAGS))

test-all: $(STAMPS)/test $(STAMPS)/docs $(STAMPS)/package $(STAMPS)/peers packages-test packages-test-all
	$(strip $(PYTEST) --all $(PYTEST_FLAGS))

soak: $(STAMPS)/test $(STAMPS)/package
	$(strip $(BIN)/python -m tests.soak $(SOAK_FLAGS))

# As root.
chaos: $(STAMPS)/test $(STAMPS)/package packages-test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.failures.chaos

# Without them tests are skipped, as pytest says in the end; PACKAGES=needed fails instead.
packages-test packages-test-all: packages-%:
	@tools/system_packages.sh for $* $(if $(filter needed,$(PACKAGES)),,|| true)

# A makefile of its own, since this one does nothing in parallel.
sanitize:
	@if tools/system_packages.sh for sanitize; then \
	    $(MAKE) -f tests/fuzz/fuzz.mk --no-print-directory -j $$(nproc) FUZZ_SECONDS=60 sanitize; \
	else \
	    test "$(PACKAGES)" != needed; \
	fi

# Of the seconds, compiling takes some more.
fuzz: $(STAMPS)/test $(STAMPS)/package
	@tools/system_packages.sh for sanitize
	@$(MAKE) -f tests/fuzz/fuzz.mk --no-print-directory -j $$(nproc) PYTHON=$(BIN)/python fuzz

# In a copy of the project. Only all of the tests, or more of them after that, make the page.
coverage: packages-test
	@tools/system_packages.sh for sanitize
	@COUNTS=$(COUNTS) tools/count_lines/measure.sh build/coverage $(PYTEST_FLAGS)
	@$(if $(and $(PYTEST_FLAGS),$(filter-out kept,$(or $(COUNTS),none))),,cp build/coverage/coverage.md docs)

peers: $(STAMPS)/peers

figure-%: $(STAMPS)/test $(STAMPS)/package $(STAMPS)/peers
	$(BIN)/python -m benchmarks.figures $*

lint: $(LINTS)

$(LINTS): $(STAMPS)/lint

lint-style:
	$(BIN)/ruff check -q

lint-types:
	$(BIN)/mypy

lint-rooms:
	@echo "Checking that rooms import and include each other in one direction"
	@report=$$(PYTHONPATH=. $(BIN)/lint-imports --no-cache 2>&1) || { echo "$$report"; exit 1; }
	@$(BIN)/python tools/check_includes.py

lint-format:
	@$(BIN)/clang-format --dry-run -Werror $(CPP) $(CPP_TESTS)

format: $(STAMPS)/lint
	$(BIN)/clang-format -i $(CPP) $(CPP_TESTS)

# The package tells the documents which options there are.
docs: $(STAMPS)/docs $(STAMPS)/package
	$(BIN)/mkdocs build --strict -q
	@$(BIN)/python tools/check_site.py build/site

wheel: $(STAMPS)/wheel
	@tools/make_wheel.sh $(BIN) dist

clean:
	@test ! -e $(ENVIRONMENT) || test -f $(ENVIRONMENT)/pyvenv.cfg || \
	    { echo "error: $(ENVIRONMENT) is no virtual environment" >&2; exit 1; }
	rm -rf $(ENVIRONMENT) $(PEERS) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -f kvstore_ext/_core*.so
	find . -name .git -prune -o -name __pycache__ -prune -exec rm -rf {} +

# An environment of another interpreter than the one asked for is made anew.
ifdef PYTHON
IDENTITY := -c 'import sys; print(sys.base_prefix, sys.version)'
ifneq ($(shell $(PYTHON) $(IDENTITY) 2>/dev/null),$(shell $(BIN)/python $(IDENTITY) 2>/dev/null))
.PHONY: $(STAMPS)/python
endif
endif

$(STAMPS)/python: requirements/build.txt
	@PYTHON='$(PYTHON)' tools/make_environment.sh $(ENVIRONMENT)
	@$(INSTALL) --only-binary :all: -r requirements/build.txt
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/demo: requirements/run.txt
$(STAMPS)/test: requirements/run.txt requirements/demo.txt requirements/wheel.txt
$(STAMPS)/lint $(STAMPS)/coverage: requirements/run.txt requirements/demo.txt requirements/test.txt
$(STAMPS)/docs: requirements/run.txt requirements/demo.txt requirements/test.txt requirements/lint.txt

$(patsubst %,$(STAMPS)/%,demo test lint coverage docs wheel): $(STAMPS)/%: $(STAMPS)/python requirements/%.txt
	@echo "Installing requirements/$*.txt"
	@$(INSTALL) --only-binary :all: -r requirements/$*.txt
	@touch $@

$(STAMPS)/peers: $(STAMPS)/python requirements/peers.txt requirements/build.txt requirements/run.txt
	@PYTHON='$(abspath $(BIN)/python)' tools/make_environment.sh $(PEERS)
	@echo "Compiling $(HOROVOD) into $(PEERS)"
	@$(PEERS)/bin/python -m pip install -qq --no-deps --only-binary :all: -r requirements/peers.txt
	@PATH="$(abspath $(PEERS))/bin:$$PATH" $(HOROVOD_FLAGS) $(PEERS)/bin/python -m pip install -qq \
	    --no-deps --no-build-isolation --no-binary horovod $(HOROVOD)
	@touch $@

# Editable, so that only C++ and the build's own files need installing again.
$(STAMPS)/package: $(STAMPS)/python setup.py pyproject.toml $(CPP)
	@echo "Compiling and installing kvstore_ext"
	@WERROR=1 $(INSTALL) --no-build-isolation -e .
	@touch $@
