#define GRAFT_IMPLEMENTATION
#define GRAFT_OWN_NAMES
#include "graft/graft.h"
