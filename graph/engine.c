/* engine.c - the one compiled copy of the engine that every host program links. */
#define GRAFT_IMPLEMENTATION
#include "graft/graft.h"
