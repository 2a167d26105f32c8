# Graft - the only build file. `make help` lists the targets; the variables meant to be set are:
#
#   MODE=release|asan|ubsan|cov   what is built; objects and results go to out/$(MODE)
#   ARCH=native                   passed as -march; name a processor to build for another machine
#   CUDA=auto|0|1                 look for CUDA and cuDNN, do not look, or insist on the toolkit
#   MODEL=resnet50                a zoo name or a path to an .onnx file, for `make policy`
#   DEVICE=cpu                    whose costs `make policy` trains against
#   EXACT=1                       `make policy` uses only rules that give the same bits for every input
#   ONLY=text                     build and run only the tests whose path contains the text
#   V=1                           show the commands
#
# Each folder becomes one archive, and a test program links only the archives of its own folder and
# of those it may include from: a fault in one stage does not stop the tests of another.

MODE  ?= release
ARCH  ?= native
CUDA  ?= auto
MODEL ?= resnet50
JOBS  ?= $(shell nproc 2>/dev/null || echo 1)
ifeq ($(origin CC),default)
CC := gcc
endif

OUT   := out/$(MODE)
GRAFT := $(OUT)/graft
Q     := $(if $(V),,@)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
export LC_ALL := C

# --- Flags -----------------------------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Werror -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes \
    -Wmissing-prototypes -Wcast-qual -Wvla -Wundef -Wformat=2 -Wdouble-promotion -Wswitch-enum

FLAGS_release := -O3 -march=$(ARCH)
FLAGS_asan    := -O1 -march=$(ARCH) -fsanitize=address -fno-omit-frame-pointer
FLAGS_ubsan   := -O1 -march=$(ARCH) -fsanitize=undefined -fno-sanitize-recover=all
FLAGS_cov     := -O0 --coverage
# MODE=fuzz is what `make fuzz` builds with; it needs clang and its run-time libraries.
FLAGS_fuzz    := -O1 -fsanitize=address,fuzzer-no-link -fno-omit-frame-pointer
ifeq ($(MODE),fuzz)
CC := clang
endif
ifeq ($(FLAGS_$(MODE)),)
$(error MODE=$(MODE) is not one of release, asan, ubsan, cov)
endif

# Sums and products are never contracted: a result may not depend on whether the processor has a
# fused multiply-add. Assertions stay on in every mode.
CFLAGS   := -std=gnu11 -g $(FLAGS_$(MODE)) -ffp-contract=off -pthread $(CFLAGS_EXTRA)
CPPFLAGS := -D_GNU_SOURCE -I. -Iinclude -I$(OUT)/generated
# What is called graft_* stays visible to graft-cuda.so, which is loaded at run time.
LDFLAGS  := $(FLAGS_$(MODE)) -pthread -Wl,--as-needed $(LDFLAGS_EXTRA)
EXPORTS  := -Wl,--export-dynamic-symbol='graft_*'
LDLIBS   := -lz3 -lprotobuf-c -lxxhash -lyaml -ldnnl -lgomp -lopenblas -lm -lpthread

COMPILE := $(CC) $(CPPFLAGS) $(CFLAGS) $(WARNINGS)
LINK    := $(CC) $(LDFLAGS)

# --- Sources ---------------------------------------------------------------------------------------
# In link order: each folder comes before the ones it includes from.
FOLDERS := emit train cost models verify gen graph

$(foreach f,$(FOLDERS) tests/support,$(eval SOURCES_$(f) := $(wildcard $(f)/*.c)))
PROTOS    := $(wildcard graph/*.proto)
GENERATED := $(PROTOS:%.proto=$(OUT)/generated/%.pb-c.c)

objects  = $(SOURCES_$(1):%.c=$(OUT)/%.o) $(if $(filter graph,$(1)),$(GENERATED:.c=.o))
archive  = $(if $(strip $(call objects,$(1))),$(OUT)/lib$(notdir $(1)).a)
archives = $(foreach f,$(1),$(call archive,$(f)))

# With `deps` among the goals nothing is compiled before it is done, whatever -j says.
DEPS_FIRST := $(filter deps,$(MAKECMDGOALS))

# --- CUDA ------------------------------------------------------------------------------------------
# The back end for NVIDIA GPUs is a library of its own beside the binary, loaded when it is asked for
# (cost/backend.h): it needs the toolkit's nvcc and static runtime, and libcudnn.so.9. All are looked
# for in $(CUDA_HOME), the usual places, and where Python wheels put them (nvidia/cudnn/lib).
CUDA_ARCHS ?= 80 90
ifneq ($(CUDA),0)
PYTHON_SITES := $(wildcard $(addsuffix /nvidia,$(VIRTUAL_ENV)/lib/python3*/site-packages \
    /usr/lib/python3*/site-packages /usr/lib/python3/dist-packages \
    /usr/local/lib/python3*/site-packages /usr/local/lib/python3*/dist-packages \
    /opt/*/lib/python3*/site-packages /opt/*/.venv/lib/python3*/site-packages))
CUDA_ROOTS := $(CUDA_HOME) /usr/local/cuda $(wildcard /usr/local/cuda-*) /opt/cuda
CUDA_WHEELS := $(addsuffix /cuda_runtime,$(PYTHON_SITES)) $(foreach s,$(PYTHON_SITES),$(wildcard $(s)/cu[0-9]*))
CUDNN_ROOTS := $(CUDNN_HOME) $(addsuffix /cudnn,$(PYTHON_SITES)) $(CUDA_ROOTS) /usr /usr/local
CUDA_HEADER := $(firstword $(wildcard $(addsuffix /include/cuda_runtime.h,$(CUDA_ROOTS) /usr $(CUDA_WHEELS))))
CUDNN_HEADER := $(firstword $(wildcard $(addsuffix /include/cudnn.h,$(CUDNN_ROOTS)) \
    /usr/include/*-linux-gnu/cudnn.h $(dir $(CUDA_HEADER))cudnn.h))
CUDNN_LIBRARY := $(firstword $(wildcard $(addsuffix /libcudnn.so.9,$(foreach r,$(patsubst %/include/,%,$(dir $(CUDNN_HEADER))) \
    $(CUDNN_ROOTS),$(r)/lib $(r)/lib64 $(r)/targets/x86_64-linux/lib) $(wildcard /usr/lib/*-linux-gnu))))
CUDART_LIBRARY := $(firstword $(wildcard $(addsuffix /libcudart_static.a,$(foreach r,$(CUDA_ROOTS) $(CUDA_WHEELS), \
    $(r)/lib64 $(r)/lib $(r)/targets/x86_64-linux/lib) $(wildcard /usr/lib/*-linux-gnu))))
NVCC := $(firstword $(wildcard $(addsuffix /bin/nvcc,$(CUDA_ROOTS) $(CUDA_WHEELS) $(addsuffix /cuda_nvcc,$(PYTHON_SITES)))) \
    $(shell command -v nvcc 2>/dev/null))
endif
CUDA_FOUND  := $(and $(CUDA_HEADER),$(NVCC),$(CUDART_LIBRARY))
CUDA_LACKS  := $(strip $(if $(CUDA_HEADER),,cuda_runtime.h) $(if $(NVCC),,nvcc) \
    $(if $(CUDART_LIBRARY),,libcudart_static.a) $(if $(CUDNN_HEADER),,cudnn.h) \
    $(if $(CUDNN_LIBRARY),,libcudnn.so.9))
ifeq ($(CUDA),0)
CUDA_LINE := cuda: not looked for (CUDA=0), left out
else ifneq ($(CUDA_LACKS),)
CUDA_LINE := cuda: $(if $(CUDA_FOUND),no cuDNN,no toolkit): $(CUDA_LACKS) not found, left out
ifeq ($(CUDA),1)
$(error CUDA=1, but $(CUDA_LACKS) was not found; set CUDA_HOME and CUDNN_HOME)
endif
else
CUDA_LIBRARY := $(OUT)/graft-cuda.so
CUDA_LINE := cuda: $(CUDA_LIBRARY) with $(NVCC) and $(CUDNN_LIBRARY)
endif
CUDA_INCLUDES := -isystem $(patsubst %/,%,$(dir $(CUDA_HEADER))) -isystem $(patsubst %/,%,$(dir $(CUDNN_HEADER)))
CUDA_OBJECTS  := $(patsubst %.c,$(OUT)/%.o,$(wildcard cost/cuda/*.c)) $(patsubst %.cu,$(OUT)/%.cu.o,$(wildcard cost/cuda/*.cu))
CUDA_CODE     := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
    -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
CUDA_LINKS    := $(CUDART_LIBRARY) $(CUDNN_LIBRARY) -Wl,-rpath,$(patsubst %/,%,$(dir $(CUDNN_LIBRARY))) \
    -ldl -lrt -lpthread -lm
NVCC_COMPILE  := $(NVCC) -O3 -lineinfo -std=c++17 -I. -Iinclude $(CUDA_INCLUDES) $(CUDA_CODE) -Xcompiler -fPIC,-Wall,-Wextra,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics

# --- Building --------------------------------------------------------------------------------------
.PHONY: all
all: $(GRAFT) $(CUDA_LIBRARY) ## Build the binary, out/release/graft (the default)
	@echo '$(strip $(CUDA_LINE))'

# Stamps hold a text and change only when it does: whatever depends on one is rebuilt then.
STAMP_COMPILE := $(OUT)/compile.stamp
STAMP_SOURCES := $(OUT)/sources.stamp
STAMP_CUDA    := $(OUT)/cuda.stamp
STAMP_GPU     := out/gpu/compile.stamp
$(STAMP_COMPILE): STAMP_TEXT = $(COMPILE) / $(LINK) $(LDLIBS)
$(STAMP_SOURCES): STAMP_TEXT = $(foreach f,$(FOLDERS) tests/support,$(SOURCES_$(f))) $(PROTOS)
$(STAMP_CUDA): STAMP_TEXT = $(NVCC_COMPILE)
$(STAMP_GPU): STAMP_TEXT = $(GPU_COMPILE)
$(STAMP_COMPILE) $(STAMP_SOURCES) $(STAMP_CUDA) $(STAMP_GPU): FORCE
	@mkdir -p $(@D)
	@echo '$(STAMP_TEXT)' | cmp -s - $@ || echo '$(STAMP_TEXT)' > $@
.PHONY: FORCE
FORCE:

say = @printf '%-8s %s\n' $(1) $(2)

$(OUT)/%.o: %.c $(STAMP_COMPILE) | $(DEPS_FIRST) $(GENERATED)
	$(if $(V),,$(call say,compile,$<))
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c $< -o $@

# The assembler copies the engine's source into this object: no compiler lists that as a dependency.
$(OUT)/emit/engine_text.o: $(wildcard include/graft/*.h include/graft/*.def include/graft/engine/*.h)

$(OUT)/generated/%.pb-c.c: %.proto | $(DEPS_FIRST)
	$(if $(V),,$(call say,protoc-c,$<))
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(OUT)/generated $<

$(OUT)/generated/%.o: $(OUT)/generated/%.c $(STAMP_COMPILE) | $(DEPS_FIRST)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -w -MMD -MP -c $< -o $@

$(OUT)/cost/cuda/%.o: cost/cuda/%.c $(STAMP_COMPILE) | $(DEPS_FIRST)
	$(if $(V),,$(call say,compile,$<))
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(LENIENT) -fPIC -fvisibility=hidden $(if $(CUDA_HEADER),$(CUDA_INCLUDES)) -MMD -MP -c $< -o $@

$(OUT)/tests/cuda/%.o: CPPFLAGS += $(if $(CUDA_LIBRARY),$(CUDA_INCLUDES))

$(OUT)/cost/cuda/%.cu.o: cost/cuda/%.cu $(wildcard cost/cuda/*.h cost/cuda/*.inc) $(STAMP_CUDA)
	$(if $(V),,$(call say,nvcc,$<))
	@mkdir -p $(@D)
	$(Q)$(NVCC_COMPILE) -c $< -o $@

# Functions of Graft that it calls are the program's that loads it. cuDNN is found where it was found
# now, or wherever the loader looks.
$(CUDA_LIBRARY): $(CUDA_OBJECTS)
	$(if $(V),,$(call say,link,$@))
	$(Q)$(LINK) -shared -Wl,-z,lazy -Wl,--exclude-libs,ALL $^ $(CUDA_LINKS) -o $@

define ARCHIVE_RULE
$(if $(call archive,$(1)),$(call archive,$(1)): $(call objects,$(1)) $(STAMP_SOURCES)
	@rm -f $$@
	$$(Q)$(AR) rcs $$@ $$(filter %.o,$$^))
endef
$(foreach f,$(FOLDERS) tests/support,$(eval $(call ARCHIVE_RULE,$(f))))

$(GRAFT): $(OUT)/main.o $(call archives,$(FOLDERS))
	$(if $(V),,$(call say,link,$@))
	$(Q)$(LINK) $(EXPORTS) $^ $(LDLIBS) -o $@

# --- Tests -----------------------------------------------------------------------------------------
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
# Every other folder of tests links everything. A fuzz target links LINKS_fuzz_<name> or just graph.
LINKS_fuzz_default := graph
LINKS_fuzz_costs := cost graph
LINKS_fuzz_rule := tests/support graph
LINKS_fuzz_policy := tests/support graph
LINKS_fuzz_taso := verify gen graph
LINKS_fuzz_user_rules := verify gen graph

TEST_FOLDERS := $(filter-out support fuzz,$(patsubst tests/%/,%,$(sort $(wildcard tests/*/))))

test_links    = $(if $(filter undefined,$(origin LINKS_$(1))),$(FOLDERS),$(LINKS_$(1)))
chosen        = $(foreach t,$(1),$(if $(ONLY),$(if $(findstring $(ONLY),$(t)),$(t)),$(t)))
programs      = $(patsubst %.c,$(OUT)/%,$(call chosen,$(wildcard tests/$(1)/$(2)_*.c)))
scripts       = $(call chosen,$(wildcard tests/$(1)/$(2)_*.sh))

# Objects that a folder's programs share, and what must be there when they run.
SHARES_cuda := $(OUT)/tests/cuda/host_threads.o $(OUT)/tests/cuda/check/supervise.o \
    $(if $(CUDA_LIBRARY),$(CUDA_OBJECTS),$(OUT)/cost/cuda/moves.o)
NEEDS_cuda  := $(CUDA_LIBRARY)
NEEDS_cuda_LIBS := $(if $(CUDA_LIBRARY),$(CUDA_LINKS))

define TEST_RULE
$(OUT)/tests/$(1)/%: $(OUT)/tests/$(1)/%.o $(SHARES_$(1)) $(call archives,tests/support $(call test_links,$(1))) | $(NEEDS_$(1))
	$$(Q)$(LINK) $(if $(NEEDS_$(1)),$(EXPORTS)) $$(filter %.o %.a,$$^) -lcmocka $(LDLIBS) $(NEEDS_$(1)_LIBS) -o $$@
.PHONY: test-$(1)
test-$(1): $(call programs,$(1),test) $(if $(call scripts,$(1),test),$(GRAFT))
	@$(RUN_TESTS) $(call programs,$(1),test) $(call scripts,$(1),test)
endef
RUN_TESTS = OUT=$(OUT) GRAFT=$(GRAFT) MODE=$(MODE) JOBS=$(JOBS) sh tests/run.sh
$(foreach f,$(TEST_FOLDERS),$(eval $(call TEST_RULE,$(f))))

FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(call chosen,$(wildcard tests/fuzz/fuzz_*.c)))
fuzz_links  = $(call archives,$(or $(LINKS_fuzz_$(1)),$(LINKS_fuzz_default)))
# The same target twice: with a plain driver that replays the corpus (part of `make test`), and with
# libFuzzer (MODE=fuzz), which looks for new inputs.
define FUZZ_RULE
$(OUT)/tests/fuzz/fuzz_$(1): $(OUT)/tests/fuzz/fuzz_$(1).o $(if $(filter fuzz,$(MODE)),,$(OUT)/tests/fuzz/replay.o) \
    $(call fuzz_links,$(1))
	$$(Q)$(LINK) $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer) $$(filter %.o %.a,$$^) -lcmocka $(LDLIBS) -o $$@
endef
$(foreach f,$(FUZZ_NAMES),$(eval $(call FUZZ_RULE,$(f))))
FUZZ_PROGRAMS := $(FUZZ_NAMES:%=$(OUT)/tests/fuzz/fuzz_%)

.PHONY: test-fuzz
test-fuzz: $(FUZZ_PROGRAMS)
	@$(RUN_TESTS) $(FUZZ_PROGRAMS)

TEST_PROGRAMS := $(foreach f,$(TEST_FOLDERS),$(call programs,$(f),test)) $(FUZZ_PROGRAMS)
TEST_SCRIPTS  := $(foreach f,$(TEST_FOLDERS),$(call scripts,$(f),test))
LONG_PROGRAMS := $(foreach f,$(TEST_FOLDERS),$(call programs,$(f),long))
LONG_SCRIPTS  := $(foreach f,$(TEST_FOLDERS),$(call scripts,$(f),long))

.PHONY: test test-long
test: $(TEST_PROGRAMS) $(if $(TEST_SCRIPTS),$(GRAFT)) ## Build and run every test (test-graph: one folder)
	@echo '$(strip $(CUDA_LINE))'
	@$(RUN_TESTS) $(TEST_PROGRAMS) $(TEST_SCRIPTS)

test-long: $(LONG_PROGRAMS) $(if $(LONG_SCRIPTS),$(GRAFT)) ## Run the tests that take minutes to hours
	@TEST_SECONDS=$${TEST_SECONDS:-14400} $(RUN_TESTS) $(LONG_PROGRAMS) $(LONG_SCRIPTS)

FUZZ_SECONDS ?= 60
.PHONY: fuzz fuzz-run
fuzz: ## Look for new inputs that break a reader (FUZZ_SECONDS=60 each, ONLY=name)
	@sh tests/fuzz/run.sh check
	@$(MAKE) --no-print-directory MODE=fuzz fuzz-run
fuzz-run: $(FUZZ_PROGRAMS)
	@OUT=$(OUT) SECONDS_EACH=$(FUZZ_SECONDS) sh tests/fuzz/run.sh run $(FUZZ_NAMES)

# --- On a machine with a GPU -----------------------------------------------------------------------
# `make gpu-check` builds a program of its own, out/gpu/graft-gpu, which needs little: gcc, the CUDA
# toolkit, cuDNN, protobuf-c and xxHash. `make gpu-bundle`, on a machine that has all that Graft needs,
# puts the last two and what protoc-c makes into out/gpu-bundle, to be taken along.
GPU_OUT     := out/gpu
GPU_RESULTS := out/gpu-check
GPU_BUNDLE  := out/gpu-bundle
# A bundle of other sources is not used; where protoc-c is missing too, the build stops there.
GPU_STALE   := $(if $(wildcard $(GPU_BUNDLE)),$(strip $(foreach p,$(PROTOS),$(shell cmp -s $(p) $(GPU_BUNDLE)/$(p) || echo $(p)))))
GPU_HAS     := $(if $(GPU_STALE),,$(wildcard $(GPU_BUNDLE)/generated/graph/onnx.pb-c.h))
# Left out: what needs oneDNN, libyaml or OpenBLAS, and the commands.
GPU_SOURCES := $(filter-out graph/settings.c graph/tasofile.c,$(wildcard graph/*.c)) \
    $(filter-out models/command.c,$(wildcard models/*.c)) \
    $(filter-out $(wildcard cost/device*.c cost/command*.c cost/bench.c) cost/kernel.c cost/program.c \
    cost/plain.c cost/nest.c cost/rival.c,$(wildcard cost/*.c)) \
    $(addprefix train/,search.c environment.c matches.c state.c survey.c recording.c) \
    $(wildcard tests/cuda/check/*.c)
GPU_OBJECTS := $(GPU_SOURCES:%.c=$(GPU_OUT)/%.o) \
    $(PROTOS:%.proto=$(GPU_OUT)/generated/%.pb-c.o)
GPU_INCLUDES := -I. -Iinclude $(if $(GPU_HAS),-isystem $(GPU_BUNDLE)/include -I$(GPU_BUNDLE)/generated,-I$(OUT)/generated)
GPU_COMPILE := $(CC) -D_GNU_SOURCE -DGRAFT_WITHOUT_ONEDNN -DXXH_INLINE_ALL= $(GPU_INCLUDES) -std=gnu11 -g -O2 \
    -march=native -ffp-contract=off -pthread -MMD -MP

$(GPU_OUT)/%.o: %.c $(STAMP_GPU) | $(if $(GPU_HAS),,$(GENERATED))
	@mkdir -p $(@D)
	$(Q)$(GPU_COMPILE) $(WARNINGS) -Wno-error -c $< -o $@

$(GPU_OUT)/generated/%.o: $(if $(GPU_HAS),$(GPU_BUNDLE),$(OUT))/generated/%.c
	@mkdir -p $(@D)
	$(Q)$(GPU_COMPILE) -w -c $< -o $@

$(GPU_OUT)/graft-gpu: $(GPU_OBJECTS)
	$(if $(V),,$(call say,link,$@))
	$(Q)$(CC) -pthread $(EXPORTS) $^ $(if $(GPU_HAS),$(GPU_BUNDLE)/lib/libprotobuf-c.a,-lprotobuf-c) -ldl -lm -o $@

# Whether it still links without what it leaves out, from the objects that are there anyway.
$(OUT)/tests/cuda/gpu_links: $(GPU_SOURCES:%.c=$(OUT)/%.o) $(GENERATED:.c=.o)
	$(if $(V),,$(call say,link,$@))
	$(Q)$(LINK) $(EXPORTS) -Wl,--defsym=graft_backend_cpu=0 $^ -lprotobuf-c -lxxhash -ldl -lm -o $@
test test-cuda: $(OUT)/tests/cuda/gpu_links

.PHONY: gpu-bundle gpu-build gpu-check
gpu-bundle: $(GENERATED) ## Gather what a machine with a GPU may lack into out/gpu-bundle
	@sh tests/cuda/bundle.sh $(OUT)/generated $(GPU_BUNDLE)

# The compiler of a machine with a GPU may warn of what ours does not.
gpu-build: LENIENT := -Wno-error
gpu-build: $(GPU_OUT)/graft-gpu $(CUDA_LIBRARY)
	$(if $(GPU_STALE),@echo 'gpu-build: $(GPU_BUNDLE) is of other sources and was not used: make gpu-bundle makes it anew')
	@echo '$(strip $(CUDA_LINE))'
	@test -n '$(CUDA_LIBRARY)'
	@cp $(CUDA_LIBRARY) $(GPU_OUT)/graft-cuda.so

gpu-check: ## Check, measure and record a GPU; results in out/gpu-check (docs/gpu.md)
	@$(MAKE) --no-print-directory -j$(JOBS) gpu-build
	@OUT=$(GPU_RESULTS) sh tests/cuda/gpu_check.sh $(GPU_OUT)/graft-gpu

# --- Checks ----------------------------------------------------------------------------------------
.PHONY: tidy format
tidy: $(GENERATED) ## Check the house style: format, lengths, clang-tidy, cppcheck (ONLY=graph/)
	@CPPFLAGS='$(CPPFLAGS)$(if $(CUDA_LIBRARY), $(CUDA_INCLUDES))' JOBS=$(JOBS) ONLY='$(ONLY)' sh tests/tidy.sh

format: ## Reformat every C file in place
	@sh tests/tidy.sh format

# An interrupted run goes on with what it has found.
RECHECK := $(OUT)/recheck
.PHONY: recheck
recheck: $(GRAFT) ## Ask cvc5 and a second Z3 about every proof of rules/graft.rules (SAMPLE=N: of N rules)
	$(GRAFT) verify --emit-smt $(RECHECK) $(if $(SAMPLE),--sample $(SAMPLE))
	@JOBS=$(JOBS) sh verify/recheck.sh $(RECHECK) out/venv-z3

# --- What Graft makes ------------------------------------------------------------------------------
DEVICE     ?= cpu
POLICY_OUT := out/$(patsubst %.onnx,%,$(notdir $(MODEL)))

MEMORY ?= 2048

.PHONY: rules policy costs bench
# With DEPTH the sets of rules/deep are enumerated that deep, and counted: no proofs. Records of graphs
# take MEMORY MiB, the rest goes to out/; an interrupted run goes on.
rules: $(GRAFT) ## Enumerate candidates, prove them, write rules/ (DEPTH=5: only enumerate, deeper)
ifeq ($(DEPTH),)
	$(GRAFT) rules --generate rules --work out/rules
else
	$(GRAFT) gen --families rules/deep --depth $(DEPTH) --counts --work out/deep-$(DEPTH) --memory $(MEMORY)
endif
rules/graft.rules: # Only when it is not there: the committed set is not made anew.
	$(MAKE) rules

# Train and emit; compile the header into a C99 program that rewrites the model; replay its decisions,
# compare outputs and measure. An interrupted run goes on from its checkpoint.
policy: $(GRAFT) | rules/graft.rules ## Measure, train and emit out/MODEL/graft_policy.h (MODEL=resnet50 or a path)
	$(GRAFT) policy $(MODEL) --out $(POLICY_OUT) --device $(DEVICE) $(if $(EXACT),--exact)
	$(CC) -std=c99 -Wall -Wextra -Werror -pedantic -O2 -Iinclude -I$(POLICY_OUT) \
	    tests/firmware/rewrite.c -o $(POLICY_OUT)/rewrite
	$(POLICY_OUT)/rewrite > $(POLICY_OUT)/decisions.txt
	$(GRAFT) report $(MODEL) --out $(POLICY_OUT) --device $(DEVICE) $(if $(EXACT),--exact)

# Costs for a machine that is not at hand: what is there is not measured again, so it can be interrupted.
costs: $(GRAFT) | rules/graft.rules ## Measure the zoo and what searches meet on it into out/costs/cpu.costs (rules/costs)
	@mkdir -p out/costs
	for model in $$($(GRAFT) model --quiet | cut -d' ' -f1); do \
	    $(GRAFT) optimize $$model out/costs/$$model.onnx --search greedy || exit 1; done
	$(GRAFT) cost calibrate
bench: $(GRAFT) ## Write out/bench/*.json (bench-NAME: one benchmark; MODELS=A,B: of these)
	$(GRAFT) bench --out out/bench $(if $(MODELS),--models $(MODELS))
bench-%: $(GRAFT)
	$(GRAFT) bench $* --out out/bench $(if $(MODELS),--models $(MODELS))

# --- Housekeeping ----------------------------------------------------------------------------------
.PHONY: deps clean help
deps: ## Install the missing system packages (DEV=1: also what tidy, fuzz and recheck need)
	@DEV='$(DEV)' sh tests/deps.sh

clean: ## Remove the objects and binaries; out/<model> and its databases stay
	$(Q)rm -rf out/gpu out/release out/asan out/ubsan out/cov out/fuzz

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@sed -n 's/^#   \([A-Z]*=\)/  \1/p' $(firstword $(MAKEFILE_LIST))

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
