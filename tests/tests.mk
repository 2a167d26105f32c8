# tests.mk - the test programs: which there are, what they link, how they run.
#
# tests/<folder>/test_*.c are cmocka programs, tests/<folder>/test_*.sh scripts that print TAP;
# long_*.c and long_*.sh are the same for `make test-long`. What a folder's programs link:
LINKS_graph  := graph
LINKS_models := models graph
LINKS_interop := models graph
LINKS_gen    := gen graph
LINKS_verify := verify gen graph
LINKS_cost   := cost models graph
LINKS_cuda   := cost models graph
LINKS_train  := train cost models graph
# These two set the limits of proofs: what asks for a limit (verify/core/limits.h) is compiled once more.
LIMITED      := $(shell grep -rl --include='*.c' 'GRAFT_LIMIT[^_]' verify)
LIMITED_OBJECTS := $(LIMITED:%.c=$(OUT)/limited/%.o)
$(OUT)/tests/verify/test_limits $(OUT)/tests/verify/long_limits: $(LIMITED_OBJECTS)
$(OUT)/tests/cost/test_openmp: $(OUT)/cost/openmp/openmp.o # In place of libgomp, as in the program.
# Every other folder of tests links everything. A fuzz target links LINKS_fuzz_<name> or just graph.
LINKS_fuzz_default := graph
LINKS_fuzz_answers := cost graph
LINKS_fuzz_costs := cost graph
LINKS_fuzz_rule := support graph
LINKS_fuzz_engine := support graph
LINKS_fuzz_policy := support graph
LINKS_fuzz_taso := support verify gen graph
LINKS_fuzz_user_rules := verify gen graph

TEST_FOLDERS := $(filter-out support fuzz,$(patsubst tests/%/,%,$(sort $(wildcard tests/*/))))

test_links    = $(if $(filter undefined,$(origin LINKS_$(1))),$(FOLDERS),$(LINKS_$(1)))
chosen        = $(foreach t,$(1),$(if $(ONLY),$(if $(findstring $(ONLY),$(t)),$(t)),$(t)))
programs      = $(patsubst %.c,$(OUT)/%,$(call chosen,$(wildcard tests/$(1)/$(2)_*.c)))
scripts       = $(call chosen,$(wildcard tests/$(1)/$(2)_*.sh))

# Objects that a folder's programs share, and what must be there when they run.
SHARES_examples = $(if $(XNNPACK_LACKS),,$(OUT)/examples/xnnpack/lower.o)
NEEDS_examples_LIBS = $(if $(XNNPACK_LACKS),,-lXNNPACK -lpthreadpool)
SHARES_cuda := $(OUT)/tests/cuda/host_threads.o $(OUT)/gpu/supervise.o \
    $(if $(CUDA_LIBRARY),$(CUDA_OBJECTS),$(addprefix $(OUT)/cost/cuda/,moves.o arbiter.o))
# A stand-in for the driver, with which cuDNN plans where there is no GPU; only tests load it.
CUDA_DRIVER := $(if $(CUDA_LIBRARY),$(OUT)/tests/cuda/driver/libcuda.so.1)
NEEDS_cuda  := $(CUDA_LIBRARY) $(CUDA_DRIVER)
NEEDS_cuda_LIBS := $(if $(CUDA_LIBRARY),$(CUDA_LINKS))
# A header of cuDNN alone is not enough: what is linked decides what is compiled.
$(OUT)/tests/cuda/%.o: OWN_FLAGS := $(if $(CUDA_LIBRARY),-DGRAFT_WITH_CUDA $(CUDA_INCLUDES))
$(patsubst %.c,$(OUT)/%.o,$(wildcard tests/cuda/*.c)): $(STAMP_CUDA)

ifneq ($(CUDA_DRIVER),)
$(CUDA_DRIVER): tests/cuda/driver.c tests/cuda/driver_names.sh $(STAMP_COMPILE)
	$(if $(V),,$(call say,link,$@))
	@mkdir -p $(@D)
	@sh tests/cuda/driver_names.sh $(dir $(CUDA_HEADER))cuda.h > $(@D)/names.c
	$(Q)$(CC) -D_GNU_SOURCE -std=gnu11 -O1 $(WARNINGS) $(CUDA_INCLUDES) -fPIC -shared -Wl,-soname,libcuda.so.1 $< $(@D)/names.c -ldl -o $@
endif

# Tests that call make find what was built as it was built.
RUN_TESTS = OUT=$(OUT) GRAFT=$(GRAFT) MODE=$(MODE) JOBS=$(JOBS) ARCH=$(ARCH) CUDA=$(if $(CUDA_LIBRARY),1,0) MPI=$(if $(MPI_LIBRARY),1,0) \
    LIBONNX=$(if $(INFER_OBJECT),1,0) sh tests/run.sh

# The folder of a program, of which the rules below know the path behind tests/.
folder_of = $(firstword $(subst /, ,$(1)))
EVERY_PROGRAM := $(patsubst %.c,$(OUT)/%,$(wildcard $(foreach f,$(TEST_FOLDERS),tests/$(f)/test_*.c tests/$(f)/long_*.c)))

$(EVERY_PROGRAM): $(OUT)/tests/%: $(OUT)/tests/%.o $$(SHARES_$$(call folder_of,$$*)) \
    $$(call archives,support $$(call test_links,$$(call folder_of,$$*))) | $$(NEEDS_$$(call folder_of,$$*))
	$(Q)$(LINK) $(EXPORTS) $(filter %.o,$^) $(filter %.a,$^) -lcmocka $(LDLIBS) \
	    $(NEEDS_$(call folder_of,$*)_LIBS) -o $@

.PHONY: $(TEST_FOLDERS:%=test-%)
test-examples test-cost: $$(EXAMPLE_PROGRAMS)
$(TEST_FOLDERS:%=test-%): test-%: $$(call programs,$$*,test) $$(if $$(call scripts,$$*,test),$(GRAFT) $(MPI_LIBRARY))
	@$(RUN_TESTS) $(call programs,$*,test) $(call scripts,$*,test)

FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(call chosen,$(wildcard tests/fuzz/fuzz_*.c)))
fuzz_links  = $(call archives,$(or $(LINKS_fuzz_$(1)),$(LINKS_fuzz_default)))
# The same target twice: with a plain driver that replays the corpus (part of `make test`), and with
# libFuzzer (MODE=fuzz), which looks for new inputs.
FUZZ_PROGRAMS := $(FUZZ_NAMES:%=$(OUT)/tests/fuzz/fuzz_%)
$(FUZZ_PROGRAMS): $(OUT)/tests/fuzz/fuzz_%: $(OUT)/tests/fuzz/fuzz_%.o \
    $(if $(filter fuzz,$(MODE)),,$(OUT)/tests/fuzz/replay.o) $$(call fuzz_links,$$*)
	$(Q)$(LINK) $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer) $(filter %.o %.a,$^) -lcmocka $(LDLIBS) -o $@

.PHONY: test-fuzz
test-fuzz: $(FUZZ_PROGRAMS)
	@$(RUN_TESTS) $(FUZZ_PROGRAMS)

TEST_PROGRAMS := $(foreach f,$(TEST_FOLDERS),$(call programs,$(f),test)) $(FUZZ_PROGRAMS)
TEST_SCRIPTS  := $(foreach f,$(TEST_FOLDERS),$(call scripts,$(f),test))
LONG_PROGRAMS := $(foreach f,$(TEST_FOLDERS),$(call programs,$(f),long))
LONG_SCRIPTS  := $(foreach f,$(TEST_FOLDERS),$(call scripts,$(f),long))

.PHONY: test-long
test-long: $(LONG_PROGRAMS) $(if $(LONG_SCRIPTS),$(GRAFT)) ## Run the tests that take minutes to hours
	@TEST_SECONDS=$${TEST_SECONDS:-14400} $(RUN_TESTS) $(LONG_PROGRAMS) $(LONG_SCRIPTS)

FUZZ_SECONDS ?= 60
.PHONY: fuzz fuzz-run
fuzz: ## Look for new inputs that break a reader (FUZZ_SECONDS=60 each, ONLY=name)
	@sh tests/fuzz/run.sh check
	@$(MAKE) --no-print-directory MODE=fuzz fuzz-run
fuzz-run: $(FUZZ_PROGRAMS)
	@OUT=$(OUT) SECONDS_EACH=$(FUZZ_SECONDS) sh tests/fuzz/run.sh run $(FUZZ_NAMES)

# Of the tests that call the engine those that take minutes at most, and the fuzz targets' corpora.
COVERAGE := $(patsubst %,$(OUT)/tests/%, $(addprefix emit/test_,by_tariff network optimize policyfile products runtime simplify) \
    $(addprefix graph/test_,corners engine foreign matching operators refusals rulecode) $(addprefix fuzz/fuzz_,engine policy rule) \
    $(addprefix train/test_,estimate tariff))
.PHONY: coverage coverage-run
coverage: ## Say which lines and branches of include/graft tests reach, and which lines none does
	@$(MAKE) --no-print-directory MODE=cov coverage-run
coverage-run: $(COVERAGE)
	@OUT=$(OUT) sh tests/coverage.sh $^
