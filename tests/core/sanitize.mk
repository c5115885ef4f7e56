# Compiles the core's tests and the core once a sanitizer, and runs them; the Makefile runs this,
# from the repository's root.

# AddressSanitizer's program is clang's, for its objects are those of the fuzz targets as well
# (tests/fuzz/fuzz.mk). A `ccache` before the compiler stays.
address_CXX := $(filter ccache %/ccache,$(CXX)) clang++-14

FLAGS := -std=c++17 -g1 -Og -Wall -Wextra -Werror -fno-omit-frame-pointer -ffp-contract=off \
         -Ikvstore_ext/csrc -Itests/core
thread_FLAGS := -fsanitize=thread -fno-sanitize-recover
# Without long simulations on one thread, where ThreadSanitizer has nothing to find.
thread_TESTS := --gtest_filter=-*.ItAdapts/*:WindowEstimator.KeepsAny*:LinkPair.DeliversEverything*
# AddressSanitizer sees what the three that are left out would, and they take time to compile.
# clang does not know how GCC is told the instructions of a kernel: it compiles the same loops.
address_FLAGS := -fsanitize=address,undefined,float-cast-overflow \
                 -fno-sanitize=null,vptr,object-size -fno-sanitize-recover=all \
                 -Wno-unknown-pragmas -Wno-missing-braces
# clang would otherwise instantiate the templates of these headers again in each file.
address_HEADER := -fpch-instantiate-templates
# Of what fuzz targets are linked with, which tells libFuzzer the way that a run has taken.
TO_FUZZ := -fsanitize=fuzzer-no-link
coverage_FLAGS := --coverage -fprofile-update=atomic

# Without what needs Python (the bindings) or MXNet (ps-lite, the engine), which are not
# instrumented; and without the local transport, which the tests replace by their own.
CORE := $(shell find kvstore_ext/csrc -name '*.cc' ! -path '*/bindings*' ! -path '*/pslite.*' \
          ! -path '*/libmxnet*' ! -path '*/engine*' ! -path '*/local_transport*')
TESTS := $(wildcard tests/core/*.cc)

# A room is compiled as one file, as setup.py does, for reading the standard library again for each
# file takes most of the time. Codecs have private names that others have as well, and the fuzz
# targets leave out these two. Counting lines goes by files.
THREADS := kvstore_ext/csrc/support/task_threads.cc kvstore_ext/csrc/support/watchdog.cc
APART := $(filter $(wildcard kvstore_ext/csrc/codecs/*.cc) $(THREADS),$(CORE))
room_of = $(subst /,_,$(patsubst kvstore_ext/csrc/%/,%,$(1)))
TOGETHER := $(filter-out $(APART),$(CORE))
ROOMS := $(foreach room,$(sort $(dir $(TOGETHER))),build/rooms/$(call room_of,$(room)).cc)

# So are the tests, in groups of files none of whose private names another one uses. Their headers
# come first: no private name may stand where these are read. Who is in no group is compiled alone.
group_0 := aggregator_test expected_messages_test slicer_test printable_test
group_1 := checksum_test aggregator_encoded_test batch_test idle_test watchdog_test
group_2 := gate_rounds_test message_cipher_test lane_test limits_test
group_3 := gate_test order_test slack_test link_window_test link_pair_test shared_memory_test
group_4 := operations_test window_test link_test link_receive_test
group_5 := slim_cores_test meetings_test recorder_test send_queue_test placing_test body_test
group_6 := unreadable_test say_test signs_of_life_test lost_messages_test slots_test statistics_test tally_test \
           kernel_updates_test cluster main
GROUPS := 0 1 2 3 4 5 6
GROUPED := $(foreach group,$(GROUPS),$(group_$(group):%=tests/core/%.cc))

OBJECTS := $(patsubst %.cc,%.o,$(APART) $(ROOMS) $(GROUPS:%=build/groups/%.cc) \
             $(filter-out $(GROUPED),$(TESTS)))
# Group 0, and what it tests, has no threads, locks or atomics: ThreadSanitizer would see nothing.
thread_OBJECTS := $(filter-out build/groups/0.o,$(OBJECTS))
coverage_OBJECTS := $(patsubst %.cc,%.o,$(CORE) $(TESTS))

SANITIZERS := thread address
PROGRAMS := $(SANITIZERS) coverage

.PHONY: run $(PROGRAMS:%=run-%)
run: $(SANITIZERS:%=run-%)

# Many tests wait: so many processes, each with a part of them, do so side by side.
SHARDS := 0 1 2

# ThreadSanitizer's tests wait more than they compute: they run while the other program is compiled.
address_AFTER := $(if $(filter run sanitize,$(or $(MAKECMDGOALS),run)),build/thread/core_tests)

$(PROGRAMS:%=run-%): run-%: build/%/core_tests
	@for shard in $(SHARDS); do \
	    GTEST_TOTAL_SHARDS=$(words $(SHARDS)) GTEST_SHARD_INDEX=$$shard \
	        $< --gtest_brief $($*_TESTS) & \
	    running="$$running $$!"; \
	done; \
	for process in $$running; do wait $$process || failed=1; done; test -z "$$failed"

# A directory is newer than a program or a room when a file has come or gone.
define ROOM
build/rooms/$(call room_of,$(1)).cc: $(1) tests/core/sanitize.mk
	@mkdir -p $$(@D)
	@printf '#include "%s"\n' $(patsubst kvstore_ext/csrc/%,%,$(filter $(1)%,$(TOGETHER))) >$$@
endef
$(foreach room,$(sort $(dir $(TOGETHER))),$(eval $(call ROOM,$(room))))

define GROUP
build/groups/$(1).cc: $(group_$(1):%=tests/core/%.cc) tests/core/sanitize.mk
	@mkdir -p $$(@D)
	@{ grep -h '^#include' $$(filter %.cc,$$^) | sort -u; \
	    printf '#include "%s"\n' $(group_$(1):%=%.cc); } >$$@
endef
$(foreach group,$(GROUPS),$(eval $(call GROUP,$(group))))

define RULES
$(1)_COMPILE = $$(or $$($(1)_CXX),$$(CXX)) $$(FLAGS) $$($(1)_FLAGS) -pthread

build/$(1)/core_tests: $(patsubst %,build/$(1)/%,$(or $($(1)_OBJECTS),$(OBJECTS))) \
    $(sort $(dir $(CORE) $(TESTS)))
	@echo "Linking $$@"
	@$$(or $$($(1)_CXX),$$(CXX)) $$($(1)_FLAGS) $$(filter %.o,$$^) -lgtest -pthread -o $$@
endef
$(foreach program,$(PROGRAMS),$(eval $(call RULES,$(program))))

# Reading other people's headers would take half of the time. Precompiled ones serve files that are
# compiled with the same flags: of a program, the headers' place below it, and further flags.
define HEADERS
build/$(1)/$(2)headers.h.gch: tests/core/headers.h tests/core/sanitize.mk
	@mkdir -p $$(@D)
	@$$($(1)_COMPILE) $(3) $$($(1)_HEADER) -x c++-header $$< -o $$@
endef

# The same, and where the files are that are compiled so. Of two places make takes the longer one.
define COMPILED
build/$(1)/$(4)%.o: $(4)%.cc build/$(1)/$(2)headers.h.gch | $($(1)_AFTER)
	@echo "Compiling $$@"
	@mkdir -p $$(@D)
	@$$($(1)_COMPILE) $(3) -include build/$(1)/$(2)headers.h -MMD -MP -c $$< -o $$@
endef

$(foreach program,$(PROGRAMS),$(eval $(call HEADERS,$(program),,)))
$(foreach program,$(PROGRAMS),$(eval $(call COMPILED,$(program),,,)))
$(eval $(call HEADERS,address,fuzzed/,$(TO_FUZZ)))
$(foreach place,kvstore_ext/ build/rooms/ tests/fuzz/,$(eval \
    $(call COMPILED,address,fuzzed/,$(TO_FUZZ),$(place))))

-include $(foreach program,$(PROGRAMS),$(patsubst \
    %.o,build/$(program)/%.d,$(or $($(program)_OBJECTS),$(OBJECTS))))
