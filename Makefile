# Graft - the build. `make help` lists the targets; the variables meant to be set are:
#
#   MODE=release|asan|cov         what is built (asan: with address and undefined-behaviour sanitizers), into out/$(MODE)
#   ARCH=native                   passed as -march; name a processor to build for another machine
#   LIBONNX=0                     do without ONNX' own shape inference
#   CUDA=auto|0|1                 look for CUDA and cuDNN, do not look, or insist on the toolkit
#   MPI=auto|0|1                  look for Open MPI, do not look, or insist on it
#   MODEL=resnet50                a zoo name or a path to an .onnx file, for `make policy` and `make report`
#   DEVICE=cpu                    whose costs they go by
#   EXACT=1                       `make policy` uses only rules that give the same bits for every input
#   MAX_FLASH=BYTES               of rules and costs of a policy for several models, for `make policy`
#   MAX_RAM=BYTES                 of graph and workspace on a processor of 32 bits, for `make policy` of one model
#   PREFIX=/usr/local             where `make install` puts things, below DESTDIR
#   ONLY=text                     build and run only the tests whose path contains the text
#   V=1                           show the commands
#
# First the targets that one asks for, then how things are built. What has a file of its own: cost/cuda/
# finds CUDA, graph/mpi/ Open MPI, tests/ builds the test programs, gpu/ the program of `make gpu-check`, examples/ its products,
# packaging/ installs.
#
# Each folder becomes one archive, and a test program links only the archives of its own folder and
# of those it may include from: a fault in one stage does not stop the tests of another.

MODE  ?= release
ARCH  ?= native
CUDA  ?= auto
MPI   ?= auto
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
# What is behind $$ is looked up when a target is reached: it may be set further below.
.SECONDEXPANSION:
MAKEFLAGS += --no-builtin-rules
export LC_ALL := C

# What is there is looked for while this file is read, so packages are installed before the rest of it.
ifneq ($(filter deps,$(MAKECMDGOALS)),)
ifeq ($(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),)
ifneq ($(shell DEV='$(DEV)' sh tests/deps.sh >&2; echo $$?),0)
$(error deps: see above)
endif
endif
endif

# --- The targets -----------------------------------------------------------------------------------
DEVICE     ?= cpu
POLICY_OUT := out/$(patsubst %.onnx,%,$(notdir $(MODEL)))
# Whether MODEL means several, which share one policy.
COMMA      := ,
SEVERAL    := $(filter zoo,$(MODEL))$(findstring $(COMMA),$(MODEL))
MEMORY     ?= 2048

.PHONY: all deps test rules policy
all: $(GRAFT) $$(CUDA_LIBRARY) $$(MPI_LIBRARY) ## Build the binary, out/release/graft (the default)
	@echo '$(strip $(CUDA_LINE))'
	@echo '$(strip $(MPI_LINE))'
	@echo '$(strip $(ONNX_LINE))'

deps: ## Install the missing system packages (DEV=1: also what tidy, fuzz and recheck need)
	@true

test: $$(TEST_PROGRAMS) $$(if $$(TEST_SCRIPTS),$(GRAFT) $$(MPI_LIBRARY)) $$(if $$(filter tests/examples/% %/test_devices.sh,$$(TEST_SCRIPTS)),$$(EXAMPLE_PROGRAMS)) ## Build and run every test (test-graph: one folder)
	@echo '$(strip $(CUDA_LINE))'
	@echo '$(strip $(MPI_LINE))'
	@echo '$(strip $(ONNX_LINE))'
	@$(RUN_TESTS) $(TEST_PROGRAMS) $(TEST_SCRIPTS)

# With DEPTH the sets of rules/deep are enumerated that deep, and counted: no proofs. Records of graphs
# take MEMORY MiB, the rest goes to out/; an interrupted run goes on.
rules: $(GRAFT) ## Enumerate candidates, prove them and rules/general.yaml, write rules/ (DEPTH=5: only enumerate, deeper)
ifeq ($(DEPTH),)
	$(GRAFT) rules --generate rules --work out/rules
	$(GRAFT) verify rules/general.yaml --merge --rules rules/graft.rules
else
	$(GRAFT) gen --families rules/deep --depth $(DEPTH) --counts --work out/deep-$(DEPTH) --memory $(MEMORY)
endif

# Train and emit; compile the header into a C99 program that rewrites the model; replay its decisions,
# compare outputs and measure. An interrupted run goes on from its checkpoint.
policy: $(GRAFT) | rules/graft.rules ## Measure, train and emit out/MODEL/graft_policy.h (MODEL=resnet50, a path, or zoo)
	$(GRAFT) policy $(MODEL) --out $(POLICY_OUT) --device $(DEVICE) $(if $(EXACT),--exact) \
	    $(if $(MAX_FLASH),--max-flash $(MAX_FLASH)) $(if $(MAX_RAM),--max-ram $(MAX_RAM))
ifeq ($(SEVERAL),)
	$(CC) -std=c99 -Wall -Wextra -Werror -pedantic -O2 -Iinclude -I$(POLICY_OUT) \
	    emit/firmware/rewrite.c -o $(POLICY_OUT)/rewrite
	$(POLICY_OUT)/rewrite > $(POLICY_OUT)/decisions.txt
	$(GRAFT) report $(MODEL) --out $(POLICY_OUT) --device $(DEVICE) $(if $(EXACT),--exact)
endif

# Both pages are one file each, to open in a browser (docs/report.md).
.PHONY: report
report: $(GRAFT) | rules/graft.rules ## Rewrite MODEL by search, show it in out/MODEL/report.html and the rules in out/rules.html
	@mkdir -p $(POLICY_OUT)
	$(GRAFT) optimize $(MODEL) $(POLICY_OUT)/report.onnx --device $(DEVICE) --report $(POLICY_OUT)/report.html
	$(GRAFT) rules --html out/rules.html

# --- Flags -----------------------------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Werror -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes \
    -Wmissing-prototypes -Wcast-qual -Wvla -Wundef -Wformat=2 -Wdouble-promotion -Wswitch-enum

FLAGS_release := -O3 -march=$(ARCH)
FLAGS_asan    := -O1 -march=$(ARCH) -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_cov     := -O0 --coverage
# MODE=fuzz is what `make fuzz` builds with; it needs clang and its run-time libraries.
FLAGS_fuzz    := -O1 -fsanitize=address,undefined,float-cast-overflow,fuzzer-no-link -fno-sanitize-recover=all -fno-omit-frame-pointer
ifeq ($(MODE),fuzz)
CC := clang
endif
ifeq ($(FLAGS_$(MODE)),)
$(error MODE=$(MODE) is not one of release, asan, cov)
endif

# Sums and products are never contracted: a result may not depend on whether the processor has a
# fused multiply-add. Assertions stay on in every mode.
CFLAGS   := -std=gnu11 -g $(FLAGS_$(MODE)) -ffp-contract=off -fno-trapping-math -pthread -fPIC -fno-semantic-interposition $(HARDENING) $(CFLAGS_EXTRA)
CPPFLAGS := -D_GNU_SOURCE -I. -Iinclude -I$(OUT)/generated
# What is called graft_* stays visible to graft-cuda.so, which is loaded at run time.
LDFLAGS  := $(FLAGS_$(MODE)) -pthread -Wl,--as-needed $(LDFLAGS_EXTRA)
EXPORTS  := -Wl,--export-dynamic-symbol='graft_*'
LDLIBS   := -lz3 -lprotobuf-c -lxxhash -lyaml -lz -ldnnl -lgomp -lopenblas -lm -lpthread

# --- ONNX' own shape inference ---------------------------------------------------------------------
# Debian's libonnx-dev, C++, behind graph/onnx/onnx_infer.cc. Its objects are not checked by sanitizers: the
# library's templates are on both sides.
ifeq ($(LIBONNX),0)
ONNX_LINE := onnx: libonnx not looked for (LIBONNX=0), left out
else
ONNX_LACKS := $(strip $(if $(wildcard /usr/include/onnx/shape_inference/implementation.h),,libonnx-dev) \
    $(if $(wildcard /usr/include/google/protobuf/message.h),,libprotobuf-dev) \
    $(if $(shell command -v $(CXX) 2>/dev/null),,$(CXX)))
ifneq ($(ONNX_LACKS),)
ONNX_LINE := onnx: $(ONNX_LACKS) not found, left out: fewer shapes are known behind opaque nodes
else
ONNX_LINE := onnx: shapes of opaque nodes by libonnx
INFER_OBJECT := $(OUT)/graph/onnx/onnx_infer.o
CPPFLAGS     += -DGRAFT_WITH_LIBONNX
LDLIBS       += -lonnx -lonnx_proto -lprotobuf -lstdc++
CXX_COMPILE  := $(CXX) -I. -DONNX_ML=1 -DONNX_NAMESPACE=onnx -std=c++17 -g -O2 -fPIC $(HARDENING) -Wall -Wextra -Werror -Wconversion -Wshadow
endif
endif

COMPILE := $(CC) $(CPPFLAGS) $(CFLAGS) $(WARNINGS)
LINK    := $(CC) $(LDFLAGS)

# --- Sources ---------------------------------------------------------------------------------------
# In link order: each folder comes before the ones it includes from.
FOLDERS := emit train cost models verify gen graph

PROTOS    := $(wildcard graph/*/*.proto)
GENERATED := $(PROTOS:%.proto=$(OUT)/generated/%.pb-c.c)

# Rooms of a folder are in its archive. Of `support`, which only tests link, the sources are in tests/support.
# Three have archives or libraries of their own: the back end for GPUs, what calls MPI, and what runs on a
# microcontroller.
APART    := cost/cuda/% cost/openmp/% emit/firmware/% graph/mpi/%
sources  = $(filter-out $(APART),$(wildcard $(if $(filter support,$(1)),tests/)$(1)/*.c $(if $(filter support,$(1)),,$(1)/*/*.c)))
objects  = $(patsubst %.c,$(OUT)/%.o,$(call sources,$(1))) $(if $(filter graph,$(1)),$(GENERATED:.c=.o) $(INFER_OBJECT))
archives = $(1:%=$(OUT)/lib%.a)

include cost/cuda/cuda.mk
include graph/mpi/mpi.mk

# --- Building --------------------------------------------------------------------------------------
# Stamps hold a text and change only when it does: whatever depends on one is rebuilt then.
STAMP_COMPILE := $(OUT)/compile.stamp
STAMP_SOURCES := $(OUT)/sources.stamp
$(STAMP_COMPILE): STAMP_TEXT = $(COMPILE) / $(CXX_COMPILE) / $(LINK) $(LDLIBS)
$(STAMP_SOURCES): STAMP_TEXT = $(foreach f,$(FOLDERS) support,$(call sources,$(f))) $(PROTOS)
# By name: what a pattern makes is an intermediate file to make, which looks behind it at FORCE.
write_stamp = @mkdir -p $(@D) && echo '$(STAMP_TEXT)' | cmp -s - $@ || echo '$(STAMP_TEXT)' > $@
$(STAMP_COMPILE) $(STAMP_SOURCES): FORCE
	$(write_stamp)
.PHONY: FORCE
FORCE:

say = @printf '%-8s %s\n' $(1) $(2)

$(OUT)/%.o: %.c $(STAMP_COMPILE) | $(GENERATED)
	$(if $(V),,$(call say,compile,$<))
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(OWN_FLAGS) -MMD -MP -c $< -o $@

$(OUT)/limited/%.o: %.c $(STAMP_COMPILE) | $(GENERATED)
	$(if $(V),,$(call say,compile,limited/$<))
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -DGRAFT_SMALL_LIMITS -MMD -MP -c $< -o $@

$(OUT)/graph/onnx/onnx_infer.o: graph/onnx/onnx_infer.cc $(STAMP_COMPILE)
	$(if $(V),,$(call say,compile,$<))
	@mkdir -p $(@D)
	$(Q)$(CXX_COMPILE) -MMD -MP -c $< -o $@

# It tells what the processor lacks, so it may need nothing itself.
ifneq ($(filter x86_64-%,$(shell $(CC) -dumpmachine)),)
$(OUT)/graph/base/processor.o: OWN_FLAGS := -march=x86-64
endif

$(OUT)/graph/base/share.o: OWN_FLAGS := $(if $(filter fuzz,$(MODE)),,-fopenmp) # Clang has another library.

# The assembler copies the engine's source into this object: no compiler lists that as a dependency.
$(OUT)/emit/header/engine_text.o: $(wildcard include/graft/*.h include/graft/*.def include/graft/engine/*.h)
# Likewise the pages.
$(OUT)/graph/base/page.o: $(wildcard graph/base/page/*)

$(OUT)/generated/%.pb-c.c: %.proto
	$(if $(V),,$(call say,protoc-c,$<))
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(OUT)/generated $<

$(OUT)/generated/%.o: $(OUT)/generated/%.c $(STAMP_COMPILE)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -w -MMD -MP -c $< -o $@

$(call archives,$(FOLDERS) support): $(OUT)/lib%.a: $$(call objects,$$*) $(STAMP_SOURCES)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

$(GRAFT): $(OUT)/main.o $(OUT)/cost/openmp/openmp.o $(call archives,$(FOLDERS))
	$(if $(V),,$(call say,link,$@))
	$(Q)$(LINK) $(EXPORTS) $^ $(LDLIBS) -o $@

# --- What has a file of its own --------------------------------------------------------------------
include tests/tests.mk
include gpu/gpu.mk
include examples/examples.mk
include packaging/packaging.mk

# --- Checks ----------------------------------------------------------------------------------------
.PHONY: tidy format
tidy: $(GENERATED) ## Check the house style: format, lengths, clang-tidy, cppcheck (ONLY=graph/)
	@CPPFLAGS='$(CPPFLAGS)$(if $(CUDA_LIBRARY), -DGRAFT_WITH_CUDA $(CUDA_INCLUDES)) $(MPI_INCLUDES)' LEFT_OUT='$(if $(MPI_LIBRARY),,graph/mpi/)' JOBS=$(JOBS) ONLY='$(ONLY)' sh tests/tidy.sh

format: ## Reformat every C file and wrap every page in place
	@sh tests/tidy.sh format

# An interrupted run goes on with what it has found.
RECHECK := $(OUT)/recheck
.PHONY: recheck second-check
recheck: $(GRAFT) ## Ask cvc5 and a second Z3 about every proof of rules/graft.rules (SAMPLE=N: of N rules)
	$(GRAFT) verify --emit-smt $(RECHECK) $(if $(SAMPLE),--sample $(SAMPLE))
	@JOBS=$(JOBS) sh verify/export/recheck.sh $(RECHECK) out/venv-z3
	@$(MAKE) --no-print-directory second-check

# Without a word of the prover's: the rules as text, evaluated by the ONNX package.
COUNT ?= 5
second-check: $(GRAFT) ## Evaluate the rules of rules/graft.rules with the ONNX reference implementation (COUNT=N times each)
	$(GRAFT) rules --json > $(OUT)/rules.json
	@python=$$(sh cost/rival/python.sh out/venv) || { echo "$$python" >&2; exit 2; }; \
	    nice $$python verify/export/second_check.py $(OUT)/rules.json --count $(COUNT) --jobs $(JOBS) $(if $(SAMPLE),--sample $(SAMPLE))

# A program that proves, linked with the solver alone: what it takes is what is trusted. The engine is
# one object; here the functions that nothing calls are left out.
TRUSTED := $(OUT)/trusted
.PHONY: trusted
trusted: $(TRUSTED) ## List the files that the verdict `proved` rests on, with their lines
	@sh verify/export/trusted.sh $< $<.map $(OUT)

$(TRUSTED): OWN_FLAGS := -ffunction-sections -fdata-sections
$(TRUSTED): $(OUT)/tests/verify/trusted.o $(OUT)/trusted_engine.o $(call archives,verify gen graph)
	$(Q)$(LINK) -Wl,--gc-sections,-Map=$@.map $^ -lz3 -lm -o $@
$(OUT)/trusted_engine.o: graph/engine.c $(STAMP_COMPILE)
	$(Q)$(COMPILE) $(OWN_FLAGS) -MMD -MP -c $< -o $@

# --- More of what Graft makes ----------------------------------------------------------------------
.PHONY: costs bench
rules/graft.rules: # Only when it is not there: the committed set is not made anew.
	$(MAKE) rules

# Proves rules that are stated; a file begins as an empty set of the solver that proves.
.PHONY: stated-rules
stated-rules: $(GRAFT) ## Prove rules/simplify.yaml and rules/onnxruntime.yaml and write their .rules
	for set in simplify onnxruntime; do \
	    printf '\010\001\022\013z3 4.8.12.0' > $(OUT)/$$set.rules && \
	    $(GRAFT) verify rules/$$set.yaml --merge --rules $(OUT)/$$set.rules && \
	    mv $(OUT)/$$set.rules rules/$$set.rules || exit 1; done

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

# Each result is kept in out/eval and done anew only when what it rests on has changed. Costs are those that
# are recorded in rules/costs: a database of its own keeps what was measured here out of it.
# ROUNDS=21, on the very processor: graphs are run too, in turns.
EVAL_DEVICE ?= amd-epyc-25-17-avx512
EVAL_MODELS := autoencoder,dscnn,resnet8,squeezenet,resnet18,mobilenetv1,mobilenetv2,resnet50,resnext50,inceptionv3,nasnet,bert,vit,nasrnn,lstm
EVAL_POLICY := out/eval/policies/policy.graft
# MODEL-SEED, each an agent of its own.
EVAL_DREAMS := $(foreach m,autoencoder dscnn resnet8 squeezenet resnet18 mobilenetv1 mobilenetv2 nasrnn lstm,$(foreach s,1 2 3,$m-$s))
.PHONY: eval eval-policy eval-dreams
eval: $(GRAFT) $(EVAL_POLICY) ## Compare policies and searches, write docs/evaluation.md (MODELS=A,B: of these, METHODS=A,B, ROUNDS=N)
	$(if $(ROUNDS),$(GRAFT) cost merge out/eval/here.costs rules/costs/$(EVAL_DEVICE).costs)
	$(GRAFT) eval $(if $(MODELS),--models $(MODELS)) $(if $(METHODS),--methods "$(METHODS)") --out out/eval \
	    $(if $(ROUNDS),--device cpu --database out/eval/here.costs --rounds $(ROUNDS),--device $(EVAL_DEVICE) --database out/eval/recorded.costs) \
	    --policy rules/policies/$(EVAL_DEVICE).graft --folds $(dir $(EVAL_POLICY))
	python3 emit/bench/evaluation.py out/eval docs/evaluation.md $(EVAL_DEVICE)
	@sh emit/report/plots.sh out/eval docs/evaluation
	@python3 tests/docs/wrap.py docs/evaluation.md

# One for all models, and one without each family.
$(EVAL_POLICY): rules/graft.rules rules/costs/$(EVAL_DEVICE).costs rules/samples/$(EVAL_DEVICE).costs | $(GRAFT)
	$(GRAFT) policy $(EVAL_MODELS) --hold-out each --device $(EVAL_DEVICE) --database out/eval/recorded.costs --out $(@D)
# A gate that fails (status 1) is a result.
out/eval/dreams/%.jsonl: rules/costs/$(EVAL_DEVICE).costs | $(GRAFT)
	@mkdir -p $(@D)
	$(GRAFT) bench agents $(firstword $(subst -, ,$*)) --dreams --seed $(lastword $(subst -, ,$*)) \
	    --device $(EVAL_DEVICE) --database out/eval/recorded.costs --metrics $@.part || [ $$? = 1 ]
	@mv $@.part $@
eval-dreams: $(EVAL_DREAMS:%=out/eval/dreams/%.jsonl) ## Train agents in dreams and in the environment, for the page of `make eval`
eval-policy: $(EVAL_POLICY) ## Make the device's policy for many models anew, rules/policies/EVAL_DEVICE.graft
	@cp $< rules/policies/$(EVAL_DEVICE).graft

# Goes on where it was interrupted; AGAIN=1 does anew what ONLY names, CHECK=1 times nothing (docs/benchmarks.md).
FOREIGN := out/foreign
.PHONY: bench-onnx
bench-onnx: $(GRAFT) ## Time models that others made before and after, in onnxruntime (ONLY=, SKIP=, AGAIN=1, CHECK=1)
	@pythons=$$(sh tests/foreign/python.sh $(FOREIGN)) && \
	    nice $${pythons% *} tests/foreign/bench.py $(GRAFT) $(FOREIGN) $${pythons#* } \
	    $(if $(ONLY),--only $(ONLY)) $(if $(SKIP),--skip $(SKIP)) $(if $(AGAIN),--again) \
	    $(if $(CHECK),--check)

# Likewise, devices with the same Python; SECONDS_EACH=N for measuring and searching. The table is in
# docs/benchmarks.md.
.PHONY: bench-runtimes
bench-runtimes: $(GRAFT) $$(XNNPACK_DEVICE) ## Time models where they run: onnxruntime, XNNPACK, Graft's executor (ONLY=, SKIP=, COLUMNS=, AGAIN=1)
	@pythons=$$(sh tests/foreign/python.sh $(FOREIGN)) && PATH=$(abspath $(FOREIGN))/venv/bin:$$PATH && \
	    nice $${pythons% *} tests/foreign/runtimes.py $(GRAFT) $(FOREIGN) $${pythons#* } docs/benchmarks.md \
	    $(if $(COLUMNS),--columns '$(COLUMNS)') $(if $(ONLY),--only $(ONLY)) $(if $(SKIP),--skip $(SKIP)) $(if $(AGAIN),--again) \
	    $(if $(SECONDS_EACH),--seconds $(SECONDS_EACH))

# Written whole or not at all; it fails when a budget is passed.
.PHONY: footprint
footprint: $(GRAFT) ## Measure flash, stack and memory on a Cortex-M4 against their budgets, into docs/footprint.md
	@mkdir -p $(OUT)/footprint
	@GRAFT=$(GRAFT) sh tests/firmware/footprint.sh $(OUT)/footprint > $(OUT)/footprint/page.md
	@GRAFT=$(GRAFT) sh tests/firmware/flash.sh $(OUT)/footprint >> $(OUT)/footprint/page.md
	@cp $(OUT)/footprint/page.md docs/footprint.md && python3 tests/docs/wrap.py docs/footprint.md && cat docs/footprint.md

# --- Housekeeping ----------------------------------------------------------------------------------
.PHONY: clean help
clean: ## Remove the objects and binaries; out/<model> and its databases stay
	$(Q)rm -rf out/gpu out/release out/asan out/cov out/fuzz

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(filter Makefile %.mk,$(MAKEFILE_LIST))
	@sed -n 's/^#   \([A-Z_]*=\)/  \1/p' $(firstword $(MAKEFILE_LIST))

# What the compiler wrote of headers.
-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
