# gpu.mk - on a machine with a GPU.
#
# `make gpu-check` builds a program of its own, out/gpu/graft-gpu, which needs little: gcc, the CUDA
# toolkit, cuDNN, protobuf-c and xxHash. `make gpu-bundle`, on a machine that has all that Graft needs,
# puts the last two and what protoc-c makes into out/gpu-bundle, to be taken along.
GPU_OUT     := out/gpu
GPU_RESULTS := out/gpu-check
GPU_BUNDLE  := out/gpu-bundle
# A bundle of other sources is not used; where protoc-c is missing too, the build stops there.
GPU_STALE   := $(if $(wildcard $(GPU_BUNDLE)),$(strip $(foreach p,$(PROTOS),$(shell cmp -s $(p) $(GPU_BUNDLE)/$(p) || echo $(p)))))
GPU_HAS     := $(if $(GPU_STALE),,$(wildcard $(GPU_BUNDLE)/generated/graph/onnx/onnx.pb-c.h))
# Left out: what needs oneDNN, libyaml, zlib or OpenBLAS, and the commands.
GPU_SOURCES := $(filter-out graph/base/settings.c graph/rule/tasofile.c graph/base/npz.c,$(call sources,graph)) \
    $(filter-out models/command.c,$(wildcard models/*.c)) \
    $(filter-out cost/cpu/% $(wildcard cost/device/device*.c cost/command*.c),$(call sources,cost)) \
    cost/cpu/winograd_product.c \
    $(addprefix train/search/,search.c descent.c escape.c walker.c environment.c matches.c changes.c routes.c survey.c) \
    train/agent/state.c \
    $(wildcard gpu/*.c)
GPU_OBJECTS := $(GPU_SOURCES:%.c=$(GPU_OUT)/%.o) \
    $(PROTOS:%.proto=$(GPU_OUT)/generated/%.pb-c.o)
GPU_INCLUDES := -I. -Iinclude $(if $(GPU_HAS),-isystem $(GPU_BUNDLE)/include -I$(GPU_BUNDLE)/generated,-I$(OUT)/generated)
GPU_COMPILE := $(CC) -D_GNU_SOURCE -DGRAFT_WITHOUT_ONEDNN -DXXH_INLINE_ALL= $(GPU_INCLUDES) -std=gnu11 -g -O2 \
    -march=$(ARCH) -ffp-contract=off -pthread -MMD -MP
# What results are known by: a program of the same sources goes on with them.
GPU_HASHED  = $(sort $(GPU_SOURCES) $(PROTOS) $(wildcard $(addsuffix /*.[hi]*,gpu cost cost/* graph graph/* train/* models) \
    include/graft/*.* include/graft/engine/*.h cost/cuda/*.c cost/cuda/*.cu rules/graft.rules))

STAMP_GPU := $(GPU_OUT)/compile.stamp
$(STAMP_GPU): STAMP_TEXT = $(GPU_COMPILE)
$(STAMP_GPU): FORCE
	$(write_stamp)

$(GPU_OUT)/%.o: %.c $(STAMP_GPU) | $(if $(GPU_HAS),,$(GENERATED))
	@mkdir -p $(@D)
	$(Q)$(GPU_COMPILE) $(WARNINGS) -Wno-error -c $< -o $@

$(GPU_OUT)/generated/%.o: $(if $(GPU_HAS),$(GPU_BUNDLE),$(OUT))/generated/%.c
	@mkdir -p $(@D)
	$(Q)$(GPU_COMPILE) -w -c $< -o $@

$(GPU_OUT)/graft-gpu: $(GPU_OBJECTS)
	$(if $(V),,$(call say,link,$@))
	$(Q)$(CC) -pthread $(EXPORTS) $^ $(if $(GPU_HAS),$(GPU_BUNDLE)/lib/libprotobuf-c.a,-lprotobuf-c) -ldl -lm -o $@

# Whether it still links without what it leaves out, from the objects that are there anyway; the three
# that are compiled otherwise for it are compiled so.
GPU_OTHERS := cost/device/backend.o graph/onnx/onnx_opaque.o graph/base/share.o
$(OUT)/tests/cuda/gpu_links: $(addprefix $(OUT)/,$(filter-out $(GPU_OTHERS),$(GPU_SOURCES:.c=.o))) $(addprefix $(GPU_OUT)/,$(GPU_OTHERS)) $(GENERATED:.c=.o)
	$(if $(V),,$(call say,link,$@))
	@mkdir -p $(@D)
	$(Q)$(LINK) $(EXPORTS) $^ -lprotobuf-c -lxxhash -ldl -lm -o $@
test test-cuda: $(OUT)/tests/cuda/gpu_links

.PHONY: gpu-bundle gpu-build gpu-check gpu-dry
gpu-bundle: $(GENERATED) ## Gather what a machine with a GPU may lack into out/gpu-bundle
	@sh gpu/bundle.sh $(OUT)/generated $(GPU_BUNDLE)

# The compiler of a machine with a GPU may warn of what ours does not.
gpu-build: LENIENT := -Wno-error
gpu-build: $(GPU_OUT)/graft-gpu $(CUDA_LIBRARY)
	$(if $(GPU_STALE),@echo 'gpu-build: $(GPU_BUNDLE) is of other sources and was not used: make gpu-bundle makes it anew')
	@echo '$(strip $(CUDA_LINE))'
	@test -n '$(CUDA_LIBRARY)'
	@cp $(CUDA_LIBRARY) $(GPU_OUT)/graft-cuda.so

GPU_RUN = SOURCES_HASH=$$(cat $(GPU_HASHED) | sha256sum | cut -c1-16) sh gpu/gpu_check.sh $(GPU_OUT)/graft-gpu
gpu-check: ## Check, measure and record a GPU; results in out/gpu-check (STAGES, TYPES, MODELS, BATCHES: docs/gpu.md)
	@$(MAKE) --no-print-directory -j$(JOBS) gpu-build
	@OUT=$(GPU_RESULTS) $(GPU_RUN)

# Every stage without a GPU: cuDNN plans for one that is described, over the stand-in for the driver that
# tests have. Nothing is run or measured.
gpu-dry: ## Go through all stages of gpu-check without a GPU; what can be planned is in out/gpu-dry
	@$(MAKE) --no-print-directory -j$(JOBS) gpu-build $(CUDA_DRIVER)
	@OUT=out/gpu-dry DESCRIBED=tests/cuda/h200.json LD_LIBRARY_PATH=$(CURDIR)/$(patsubst %/,%,$(dir $(CUDA_DRIVER))) $(GPU_RUN)
