# examples.mk - products that link the header (examples/). What needs the project's archives is built
# here, the rest by tests/examples. XNNPACK: Debian's libxnnpack-dev, and libpthreadpool-dev for its header.
XNNPACK_LACKS := $(strip $(if $(wildcard /usr/include/xnnpack.h),,libxnnpack-dev) \
    $(if $(wildcard /usr/include/pthreadpool.h),,libpthreadpool-dev))
EXAMPLE_PROGRAMS := $(if $(XNNPACK_LACKS),,$(OUT)/examples/xnnpack/run $(OUT)/examples/xnnpack/device)
XNNPACK_DEVICE   := $(filter %/device,$(EXAMPLE_PROGRAMS))
EXAMPLE_POLICY   := rules/policies/intel-xeon-6-167-avx512.graft

.PHONY: examples
examples: $(EXAMPLE_PROGRAMS) $(GRAFT) ## Build the runtime on XNNPACK, out/release/examples/xnnpack/run, and it as a device
	@$(if $(XNNPACK_LACKS),echo 'examples: no XNNPACK: $(XNNPACK_LACKS) not found',true)

$(OUT)/examples/graft_policy.h: $(GRAFT) $(EXAMPLE_POLICY)
	@mkdir -p $(@D)
	$(Q)$(GRAFT) --quiet emit-policy $(EXAMPLE_POLICY) $@ --name zoo

$(OUT)/examples/xnnpack/run.o: OWN_FLAGS := -I$(OUT)/examples
$(OUT)/examples/xnnpack/run.o: $(OUT)/examples/graft_policy.h

# Times of another version are others.
$(OUT)/examples/xnnpack/device.o: OWN_FLAGS := \
    -DXNNPACK_VERSION='"$(or $(shell dpkg-query -W -f '$${Version}' libxnnpack-dev 2> /dev/null),unknown)"'

$(EXAMPLE_PROGRAMS): %: %.o $(OUT)/examples/xnnpack/lower.o $(call archives,$(FOLDERS))
	$(Q)$(LINK) $^ -lXNNPACK -lpthreadpool $(LDLIBS) -o $@
