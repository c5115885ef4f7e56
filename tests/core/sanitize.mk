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
address_FLAGS := -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow \
                 -fno-sanitize=null,vptr,object-size -fno-sanitize-recover=all \
                 -Wno-unknown-pragmas -Wno-missing-braces
coverage_FLAGS := --coverage -fprofile-update=atomic

# Without what needs Python (the bindings) or MXNet (ps-lite, the engine), which are not
# instrumented; and without the local transport, which the tests replace by their own.
CORE := $(shell find kvstore_ext/csrc -name '*.cc' ! -path '*/bindings*' ! -path '*/pslite.*' \
          ! -path '*/libmxnet*' ! -path '*/engine*' ! -path '*/local_transport*')
SOURCES := $(CORE) $(wildcard tests/core/*.cc)
OBJECTS := $(SOURCES:.cc=.o)

SANITIZERS := thread address
PROGRAMS := $(SANITIZERS) coverage

.PHONY: run $(PROGRAMS:%=run-%)
run: $(SANITIZERS:%=run-%)

$(PROGRAMS:%=run-%): run-%: build/%/core_tests
	$< --gtest_brief $($*_TESTS)

# A directory is newer than the program when a file has come or gone.
define RULES
$(1)_COMPILE = $$(or $$($(1)_CXX),$$(CXX)) $$(FLAGS) $$($(1)_FLAGS) -pthread

build/$(1)/core_tests: $(OBJECTS:%=build/$(1)/%) $(sort $(dir $(SOURCES)))
	@echo "Linking $$@"
	@$$(or $$($(1)_CXX),$$(CXX)) $$($(1)_FLAGS) $$(filter %.o,$$^) -lgtest -pthread -o $$@

# Reading other people's headers would take half of the time.
build/$(1)/headers.h.gch: tests/core/headers.h tests/core/sanitize.mk
	@mkdir -p $$(@D)
	@$$($(1)_COMPILE) -x c++-header $$< -o $$@

build/$(1)/%.o: %.cc build/$(1)/headers.h.gch
	@echo "Compiling $$@"
	@mkdir -p $$(@D)
	@$$($(1)_COMPILE) -include build/$(1)/headers.h -MMD -MP -c $$< -o $$@
endef
$(foreach program,$(PROGRAMS),$(eval $(call RULES,$(program))))

-include $(foreach program,$(PROGRAMS),$(OBJECTS:%.o=build/$(program)/%.d))
