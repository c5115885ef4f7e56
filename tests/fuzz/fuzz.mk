# Links the fuzz targets with the core as tests/core/sanitize.mk compiles it for AddressSanitizer, and
# runs them, then those of Python; the Makefile runs this, from the repository's root. A target is a
# file of tests/fuzz, but for the helpers, or a function of targets.py; its corpus is in
# tests/fuzz/corpus, and what libFuzzer finds meanwhile is kept in build/fuzz/corpus.

# Runs of each target, over all starts: build/fuzz/runs counts them, as long as its sources stay the
# same, from what runs.json has of other machines. And a processor's seconds for all targets together, at
# most; without, until all have run.
FUZZ_RUNS ?= 10000000
FUZZ_SECONDS ?=
PYTHON ?= python3

include tests/core/sanitize.mk

HELPERS := keys by_hand by_threads
TARGETS := $(filter-out $(HELPERS),$(patsubst tests/fuzz/%.cc,%,$(wildcard tests/fuzz/*.cc)))

OF_PYTHON := supervisor launchers_proof tasks_proof reports optimizer questions manifest

# A target runs on one thread, but for those of these that are linked with the core's own threads.
# They take what the others have found.
THREADED := server worker

SHARED := $(patsubst %.cc,build/address/%.o,$(filter-out $(THREADS),$(APART)) $(ROOMS) tests/fuzz/keys.cc)
BY_HAND := build/address/tests/fuzz/by_hand.o
BY_THREADS := $(patsubst %.cc,build/address/%.o,tests/fuzz/by_threads.cc $(THREADS))

ALL := $(TARGETS) $(OF_PYTHON)
FUZZED := $(if $(filter sanitize,$(MAKECMDGOALS)),$(TARGETS),$(ALL))
SECONDS_EACH := $(if $(FUZZ_SECONDS),$(shell \
    expr \( $(FUZZ_SECONDS) + $(words $(FUZZED)) - 1 \) / $(words $(FUZZED))))
LIMITS := --runs $(FUZZ_RUNS) $(SECONDS_EACH:%=--seconds %)
# What the core says of messages that it refuses does not interest.
OPTIONS := -max_len=600 -len_control=0 -timeout=100 -rss_limit_mb=2048 -close_fd_mask=2 -verbosity=0 \
           -print_funcs=0
# Of a target with as many branches as these libFuzzer would take most of the time to find out which
# of its corpus has come to the rarest ones, and choose among all that by it.
$(foreach way,run threads,$(THREADED:%=$(way)-%)): OPTIONS += -entropic=0
# Freed memory that AddressSanitizer keeps, to see who still uses it: that of dozens of runs is enough.
# And it need not say who has called whoever allocated it: replaying what was found can.
export ASAN_OPTIONS ?= quarantine_size_mb=8:malloc_context_size=2

.PHONY: fuzz sanitize replay keep $(foreach way,run replay keep threads,$(ALL:%=$(way)-%))
fuzz: $(ALL:%=run-%) $(THREADED:%=threads-%)
# What needs neither MXNet nor the package.
sanitize: run $(TARGETS:%=run-%) $(THREADED:%=threads-%)
replay: $(TARGETS:%=replay-%) $(THREADED:%=threads-%)
keep: $(TARGETS:%=keep-%)
	@$(PYTHON) -m tests.fuzz.tally

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

# All that has been found so far, once.
$(THREADED:%=threads-%): threads-%: build/fuzz/%-threads
	@mkdir -p build/fuzz/found
	@$< $(OPTIONS) -artifact_prefix=build/fuzz/found/$*-threads- -runs=0 $(wildcard \
	    tests/fuzz/corpus/$* build/fuzz/corpus/$*)

# Takes what runs have found into the corpus, as few and as short as show the same.
$(TARGETS:%=keep-%): keep-%: build/fuzz/%
	@mkdir -p build/fuzz/kept/$* tests/fuzz/corpus/$*
	@$< -close_fd_mask=2 -verbosity=0 -use_counters=0 -merge=1 build/fuzz/kept/$* tests/fuzz/corpus/$* \
	    build/fuzz/corpus/$*
	@rm -rf tests/fuzz/corpus/$* && mv build/fuzz/kept/$* tests/fuzz/corpus/$*

$(TARGETS:%=build/fuzz/%): build/fuzz/%: build/address/tests/fuzz/%.o $(BY_HAND) $(SHARED)
$(THREADED:%=build/fuzz/%-threads): build/fuzz/%-threads: build/address/tests/fuzz/%.o $(BY_THREADS) \
    $(SHARED)
$(TARGETS:%=build/fuzz/%) $(THREADED:%=build/fuzz/%-threads):
	@echo "Linking $@"
	@mkdir -p $(@D)
	@$(address_CXX) $(address_FLAGS) -fsanitize=fuzzer $^ -pthread -o $@

.SECONDARY:
-include $(HELPERS:%=build/address/tests/fuzz/%.d) $(TARGETS:%=build/address/tests/fuzz/%.d)
