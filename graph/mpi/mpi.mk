# mpi.mk - finding Open MPI, and building what calls it, a library of its own beside the binary that is
# loaded under mpirun (graph/base/ranks.h).
#
# Open MPI's own mpicc says where its headers and libraries are; it is looked for in $(MPI_HOME) and in
# the path.
ifneq ($(MPI),0)
MPICC        := $(firstword $(wildcard $(MPI_HOME)/bin/mpicc) $(shell command -v mpicc 2>/dev/null))
MPI_FOLDERS  := $(if $(MPICC),$(shell $(MPICC) --showme:incdirs 2>/dev/null))
MPI_HEADER   := $(firstword $(wildcard $(addsuffix /mpi.h,$(MPI_FOLDERS))))
endif
MPI_LACKS    := $(if $(MPICC),$(if $(MPI_HEADER),,mpi.h of Open MPI),mpicc of Open MPI)
ifeq ($(MPI),0)
MPI_LINE := mpi: not looked for (MPI=0), left out
else ifneq ($(MPI_LACKS),)
MPI_LINE := mpi: $(MPI_LACKS) not found, left out: no work is shared over machines
ifeq ($(MPI),1)
$(error MPI=1, but $(MPI_LACKS) was not found; set MPI_HOME)
endif
else
MPI_LIBRARY := $(OUT)/graft-mpi.so
MPI_LINE := mpi: $(MPI_LIBRARY) with $(MPICC)
endif
MPI_INCLUDES := $(addprefix -isystem ,$(MPI_FOLDERS))
MPI_LINKS    := $(if $(MPI_LIBRARY),$(shell $(MPICC) --showme:link 2>/dev/null))

$(OUT)/graph/mpi/%.o: OWN_FLAGS := $(MPI_INCLUDES)

$(MPI_LIBRARY): $(OUT)/graph/mpi/ranks_mpi.o
	$(if $(V),,$(call say,link,$@))
	$(Q)$(LINK) -shared $^ $(MPI_LINKS) -o $@
