/* symmask.c - see symmask.h. Terms are the keys of an open table. */
#include "verify/symmask.h"

#include <assert.h>
#include <string.h>

enum { BITS = 64 * GRAFT_SYM_MASK_WORDS, FIRST_TERMS = 1024, ARENA_BYTES = 1 << 18 };

typedef struct {
    Z3_ast term; /* NULL: free. */
    graft_sym_mask mask;
} entry;

struct graft_sym_masks {
    Z3_context z3;
    graft_arena *arena;
    entry *entries;
    uint32_t capacity; /* A power of two. */
    uint32_t count;
    uint32_t symbol_count;
};

graft_sym_masks *graft_sym_masks_new(Z3_context z3)
{
    graft_arena *arena = graft_arena_new(ARENA_BYTES);
    assert(arena != NULL);
    graft_sym_masks *masks = GRAFT_NEW(arena, graft_sym_masks, 1);
    masks->z3 = z3;
    masks->arena = arena;
    masks->capacity = FIRST_TERMS;
    masks->entries = GRAFT_NEW(arena, entry, FIRST_TERMS);
    return masks;
}

void graft_sym_masks_free(graft_sym_masks *masks) { graft_arena_free(masks->arena); }

static entry *find_entry(const graft_sym_masks *masks, Z3_ast term)
{
    uint64_t hash = (uint64_t)(uintptr_t)term * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 32) & (masks->capacity - 1);
    while (masks->entries[at].term != NULL && masks->entries[at].term != term) {
        at = (at + 1) & (masks->capacity - 1);
    }
    return &masks->entries[at];
}

static void grow(graft_sym_masks *masks)
{
    const entry *old = masks->entries;
    uint32_t count = masks->capacity;
    masks->capacity = 2 * count;
    masks->entries = GRAFT_NEW(masks->arena, entry, masks->capacity);
    for (uint32_t i = 0; i < count; i++) {
        if (old[i].term != NULL) {
            *find_entry(masks, old[i].term) = old[i];
        }
    }
}

static void note_symbol(graft_sym_masks *masks, graft_sym_mask *mask)
{
    uint32_t bit = masks->symbol_count < BITS - 1 ? masks->symbol_count++ : BITS - 1;
    mask->words[bit / 64] |= UINT64_C(1) << bit % 64;
}

graft_sym_mask graft_sym_mask_of(graft_sym_masks *masks, Z3_ast term)
{
    graft_sym_mask mask = {{0}};
    const entry *known = find_entry(masks, term);
    if (known->term != NULL) {
        return known->mask;
    }
    if (Z3_get_ast_kind(masks->z3, term) != Z3_APP_AST) {
        return mask;
    }
    Z3_app app = Z3_to_app(masks->z3, term);
    uint32_t count = Z3_get_app_num_args(masks->z3, app);
    for (uint32_t i = 0; i < count; i++) {
        graft_sym_mask part = graft_sym_mask_of(masks, Z3_get_app_arg(masks->z3, app, i));
        graft_sym_masks_join(&mask, &part);
    }
    if (count == 0 &&
        Z3_get_decl_kind(masks->z3, Z3_get_app_decl(masks->z3, app)) == Z3_OP_UNINTERPRETED) {
        note_symbol(masks, &mask);
    }
    if (2 * (masks->count + 1) > masks->capacity) {
        grow(masks);
    }
    *find_entry(masks, term) = (entry){term, mask};
    masks->count++;
    return mask;
}

bool graft_sym_masks_meet(const graft_sym_mask *a, const graft_sym_mask *b)
{
    uint64_t common = 0;
    for (uint32_t i = 0; i < GRAFT_SYM_MASK_WORDS; i++) {
        common |= a->words[i] & b->words[i];
    }
    return common != 0;
}

void graft_sym_masks_join(graft_sym_mask *a, const graft_sym_mask *b)
{
    for (uint32_t i = 0; i < GRAFT_SYM_MASK_WORDS; i++) {
        a->words[i] |= b->words[i];
    }
}

bool graft_sym_masks_contain(const graft_sym_mask *whole, const graft_sym_mask *part)
{
    uint64_t missing = 0;
    for (uint32_t i = 0; i < GRAFT_SYM_MASK_WORDS; i++) {
        missing |= part->words[i] & ~whole->words[i];
    }
    return missing == 0;
}

bool graft_sym_masks_is_exact(const graft_sym_mask *mask)
{
    return mask->words[GRAFT_SYM_MASK_WORDS - 1] >> 63 == 0;
}
