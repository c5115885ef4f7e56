# Links the fuzz targets with the core as tests/core/sanitize.mk compiles it for AddressSanitizer, and
# runs them, then those of Python; the Makefile runs this, from the repository's root. A target is a
# file of tests/fuzz, but for the helpers, or a function of targets.py; its corpus is in
# tests/fuzz/corpus, and what libFuzzer finds meanwhile is kept in build/fuzz/corpus.

# Runs of each target, over all starts: build/fuzz/runs counts them, as long as the program stays the
# same. And a processor's seconds for all targets together, at most; without, until all have run.
FUZZ_RUNS ?= 10000000
FUZZ_SECONDS ?=
PYTHON ?= python3

include tests/core/sanitize.mk

HELPERS := keys
TARGETS := $(filter-out $(HELPERS),$(patsubst tests/fuzz/%.cc,%,$(wildcard tests/fuzz/*.cc)))

OF_PYTHON := supervisor launchers_proof tasks_proof reports optimizer questions manifest

SHARED := $(CORE:%.cc=build/address/%.o) $(HELPERS:%=build/address/tests/fuzz/%.o)

ALL := $(TARGETS) $(OF_PYTHON)
FUZZED := $(if $(filter sanitize,$(MAKECMDGOALS)),$(TARGETS),$(ALL))
SECONDS_EACH := $(if $(FUZZ_SECONDS),$(shell \
    expr \( $(FUZZ_SECONDS) + $(words $(FUZZED)) - 1 \) / $(words $(FUZZED))))
LIMITS := --runs $(FUZZ_RUNS) $(SECONDS_EACH:%=--seconds %)
# What the core says of messages that it refuses does not interest.
OPTIONS := -max_len=600 -len_control=0 -timeout=100 -rss_limit_mb=2048 -close_fd_mask=2 -verbosity=0 \
           -print_funcs=0

.PHONY: fuzz sanitize replay keep $(foreach way,run replay keep,$(ALL:%=$(way)-%))
fuzz: $(ALL:%=run-%)
# What needs neither MXNet nor the package.
sanitize: run $(TARGETS:%=run-%)
replay: $(TARGETS:%=replay-%)
keep: $(TARGETS:%=keep-%)

$(TARGETS:%=run-%): run-%: build/fuzz/%
	@mkdir -p build/fuzz/corpus/$* build/fuzz/found
	@echo "Fuzzing $*"
	@$(PYTHON) -m tests.fuzz.programs $(LIMITS) $(foreach \
	    corpus,build/fuzz/corpus/$* $(wildcard tests/fuzz/corpus/$*),--corpus $(corpus)) \
	    $< $(OPTIONS) -artifact_prefix=build/fuzz/found/$*-

$(OF_PYTHON:%=run-%): run-%:
	@$(PYTHON) -W ignore -m tests.fuzz $(LIMITS) $*

# The corpus, once.
$(TARGETS:%=replay-%): replay-%: build/fuzz/%
	@$< $(OPTIONS) -runs=0 $(wildcard tests/fuzz/corpus/$*)

# Takes what runs have found into the corpus, as few and as short as show the same.
$(TARGETS:%=keep-%): keep-%: build/fuzz/%
	@mkdir -p build/fuzz/kept/$* tests/fuzz/corpus/$*
	@$< -close_fd_mask=2 -verbosity=0 -use_counters=0 -merge=1 build/fuzz/kept/$* tests/fuzz/corpus/$* \
	    build/fuzz/corpus/$*
	@rm -rf tests/fuzz/corpus/$* && mv build/fuzz/kept/$* tests/fuzz/corpus/$*

$(TARGETS:%=build/fuzz/%): build/fuzz/%: build/address/tests/fuzz/%.o $(SHARED)
	@echo "Linking $@"
	@mkdir -p $(@D)
	@$(address_CXX) $(address_FLAGS) -fsanitize=fuzzer $^ -pthread -o $@

.SECONDARY:
-include $(HELPERS:%=build/address/tests/fuzz/%.d) $(TARGETS:%=build/address/tests/fuzz/%.d)
