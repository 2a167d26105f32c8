# packaging.mk - installing, and what is handed to others: a tarball, a Debian package, a wheel.

VERSION := $(shell sed -n 's/^#define GRAFT_VERSION *"\(.*\)"/\1/p' include/graft/graft.h)
PREFIX  ?= /usr/local
# The executor for other programs (include/graft/run.h); it shows nothing else.
RUN_LIBRARY := $(OUT)/libgraft_run.so.$(shell sed -n 's/^#define GRAFT_ABI //p' include/graft/graft.h)
INSTALL := VERSION=$(VERSION) PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' RUN_LIBRARY=$(RUN_LIBRARY) \
    XNNPACK_DEVICE=$(XNNPACK_DEVICE) sh packaging/install.sh

$(RUN_LIBRARY): $(OUT)/emit/run/run.o $(call archives,$(FOLDERS)) emit/run/run.map
	$(if $(V),,$(call say,link,$@))
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,--version-script=emit/run/run.map $(filter %.o %.a,$^) $(LDLIBS) -o $@

.PHONY: install uninstall dist
install: $(GRAFT) $(CUDA_LIBRARY) $(MPI_LIBRARY) $(RUN_LIBRARY) $(XNNPACK_DEVICE) ## Install below DESTDIR and PREFIX (/usr/local)
	@GRAFT=$(GRAFT) CUDA_LIBRARY=$(CUDA_LIBRARY) MPI_LIBRARY=$(MPI_LIBRARY) $(INSTALL) install

uninstall: ## Remove what `make install` installs
	@$(INSTALL) uninstall

# The same commit gives the same bytes.
TARBALL := out/graft-$(VERSION).tar.gz
dist: ## Pack the sources of the last commit into out/graft-VERSION.tar.gz
	@mkdir -p out
	@git diff --quiet HEAD || echo 'dist: what is not committed is left out'
	@git archive --format=tar --prefix=graft-$(VERSION)/ HEAD | gzip -9n > $(TARBALL)
	@echo '$(TARBALL)'

# Packages are for other machines: built for x86-64-v3 in a folder of their own, without CUDA and MPI, and
# hardened as distributions ask.
PACKAGE_ARCH ?= x86-64-v3
PACKAGE_MAKE := $(MAKE) --no-print-directory ARCH=$(PACKAGE_ARCH) CUDA=0 MPI=0 MODE=release OUT=out/package \
    HARDENING='-fstack-protector-strong -D_FORTIFY_SOURCE=2' \
    LDFLAGS_EXTRA='-pie -Wl,-z,relro,-z,now'

.PHONY: deb wheel deb-pack wheel-pack wheel-tools
deb: ## Build a Debian package, out/graft_VERSION_amd64.deb
	@$(PACKAGE_MAKE) deb-pack
wheel: ## Build a Python wheel, out/graft_onnx-VERSION-*.whl
	@$(PACKAGE_MAKE) wheel-pack

# Of what is in $(OUT), whatever it was built for.
PACKAGES ?= out
deb-pack: $(GRAFT)
	@GRAFT=$(GRAFT) VERSION=$(VERSION) sh packaging/deb.sh $(OUT)/deb $(PACKAGES)/graft_$(VERSION)_$$(dpkg --print-architecture).deb

wheel-pack: $(OUT)/wheel/graft
	@rm -rf $(OUT)/wheel/root
	@GRAFT=$(GRAFT) VERSION=$(VERSION) PREFIX=$(abspath $(OUT))/wheel/root sh packaging/install.sh install > /dev/null
	@strip -o $(OUT)/wheel/program $<
	@python3 packaging/wheel.py $(OUT)/wheel/program $(OUT)/wheel/root $(VERSION) $(PACKAGES)

# The program as in $(GRAFT), but for where it looks for the libraries that the wheel brings along, and
# they for one another.
$(OUT)/wheel/graft: $(GRAFT)
	@mkdir -p $(@D)
	$(Q)$(LINK) $(EXPORTS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib' $(OUT)/main.o $(call archives,$(FOLDERS)) $(LDLIBS) -o $@

wheel-tools: # What the wheel is checked with, from PyPI.
	python3 -m venv out/venv-wheel
	out/venv-wheel/bin/pip install --quiet --disable-pip-version-check twine check-wheel-contents mypy
