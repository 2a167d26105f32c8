/* symmask.c - see symmask.h. */
#include "verify/sizes/symmask.h"

#include "verify/sizes/termtable.h"

#include <assert.h>

enum { BITS = 64 * GRAFT_SYM_MASK_WORDS, TERMS_FIRST = 1024, ARENA_BYTES = 1 << 18 };

struct graft_sym_masks {
    Z3_context z3;
    graft_arena *arena;
    graft_term_table terms;
    graft_sym_mask *known; /* By the terms' numbers. */
    uint32_t capacity;
    uint32_t symbol_count;
};

graft_sym_masks *graft_sym_masks_new(Z3_context z3)
{
    graft_arena *arena = graft_arena_new(ARENA_BYTES);
    assert(arena != NULL);
    graft_sym_masks *masks = GRAFT_NEW(arena, graft_sym_masks, 1);
    masks->z3 = z3;
    masks->arena = arena;
    graft_term_table_open(&masks->terms, arena);
    return masks;
}

void graft_sym_masks_free(graft_sym_masks *masks) { graft_arena_free(masks->arena); }

static void remember(graft_sym_masks *masks, Z3_ast term, const graft_sym_mask *mask)
{
    uint32_t number = graft_term_table_add(&masks->terms, term);
    masks->known = graft_arena_grow(masks->arena, masks->known, number, &masks->capacity,
                                    TERMS_FIRST, sizeof *masks->known);
    masks->known[number] = *mask;
}

static void note_symbol(graft_sym_masks *masks, graft_sym_mask *mask)
{
    bool own = masks->symbol_count + 1 < GRAFT_LIMIT(MASK_SYMBOLS);
    uint32_t bit = own ? masks->symbol_count++ : BITS - 1;
    mask->words[bit / 64] |= UINT64_C(1) << bit % 64;
}

graft_sym_mask graft_sym_mask_of(graft_sym_masks *masks, Z3_ast term)
{
    graft_sym_mask mask = {{0}};
    uint32_t number = graft_term_table_find(&masks->terms, term);
    if (number != GRAFT_TERM_ABSENT) {
        return masks->known[number];
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
    remember(masks, term, &mask);
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
