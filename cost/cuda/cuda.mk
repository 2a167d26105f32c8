# cuda.mk - finding CUDA and cuDNN, and building the back end for NVIDIA GPUs, a library of its own
# beside the binary that is loaded when it is asked for (cost/device/backend.h).
#
# It needs the toolkit's nvcc and static runtime, and libcudnn.so.9. All are looked for in $(CUDA_HOME),
# the usual places, and where Python wheels put them (nvidia/cudnn/lib).
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

STAMP_CUDA := $(OUT)/cuda.stamp
$(STAMP_CUDA): STAMP_TEXT = $(NVCC_COMPILE)
$(STAMP_CUDA): FORCE
	$(write_stamp)

$(OUT)/cost/cuda/%.o: cost/cuda/%.c $(STAMP_COMPILE)
	$(if $(V),,$(call say,compile,$<))
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(LENIENT) -fPIC -fvisibility=hidden $(if $(CUDA_HEADER),$(CUDA_INCLUDES)) -MMD -MP -c $< -o $@

$(OUT)/cost/cuda/%.cu.o: cost/cuda/%.cu $(wildcard cost/cuda/*.h cost/cuda/*.inc) $(STAMP_CUDA)
	$(if $(V),,$(call say,nvcc,$<))
	@mkdir -p $(@D)
	$(Q)$(NVCC_COMPILE) -c $< -o $@

# Functions of Graft that it calls are the program's that loads it. cuDNN is found where it was found
# now, or wherever the loader looks.
$(CUDA_LIBRARY): $(CUDA_OBJECTS)
	$(if $(V),,$(call say,link,$@))
	$(Q)$(LINK) -shared -Wl,-z,lazy -Wl,--exclude-libs,ALL $^ $(CUDA_LINKS) -o $@
