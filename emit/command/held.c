/* held.c - see held.h. */
#include "emit/command/held.h"

#include <stdlib.h>

graft_status graft_held_open(graft_env *env, FILE *out, graft_held *held)
{
    *held = (graft_held){.out = out};
    held->lines = open_memstream(&held->text, &held->size);
    return held->lines != NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for what is printed of bodies");
}

void graft_held_settle(graft_held *held, bool kept)
{
    (void)fflush(held->lines);
    if (kept) {
        (void)fwrite(held->text, 1, held->size, held->out);
    }
    rewind(held->lines);
}

void graft_held_close(graft_held *held)
{
    if (held->lines != NULL) {
        (void)fclose(held->lines);
    }
    free(held->text);
    *held = (graft_held){.out = NULL};
}
