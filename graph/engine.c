/* engine.c - the one compiled copy of the engine that every host program links. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 10
/* gcc's analyser takes the aligned workspace for NULL where it was compared with NULL. */
#pragma GCC diagnostic ignored "-Wanalyzer-null-dereference"
#endif
#define GRAFT_IMPLEMENTATION
#define GRAFT_LARGE_GRAPHS
#include "graft/graft.h"
