/* corpus.h - the adversarial corpus (tests/verify/corpus/): rules in users' YAML, named after
 * the class of mistake or of law, put before the verifier in the way of `graft verify`. */
#pragma once

#include "verify/command/userrules.h"
#include "verify/trial.h"

typedef enum corpus_kind {
    CORPUS_TRUE,
    CORPUS_FALSE, /* At some place within the verifier's bounds. */
    CORPUS_BEYOND /* False, but not within the bounds. */
} corpus_kind;

typedef struct corpus_file {
    const char *path;
    uint8_t kind; /* corpus_kind */
} corpus_file;

/* Every file of the corpus. */
enum { CORPUS_FILES = 5 };
extern const corpus_file corpus_files[CORPUS_FILES];

typedef struct corpus_rules {
    graft_user_rule *named;
    graft_rule *rules;
    uint32_t count;
} corpus_rules;

/* Reads the rules of a file, of those `every`-th one from `first` on; asserts that it can. */
corpus_rules corpus_read(graft_env *env, const char *path, uint32_t first, uint32_t every);

typedef struct corpus_tally {
    uint32_t count;
    uint32_t proved;
    uint32_t unbounded; /* Of them. */
    uint32_t refuted;
    uint32_t unknown;
    uint32_t wrong; /* False rules accepted, true rules refuted: each was printed. */
} corpus_tally;

/* Tries rules of a kind and counts verdicts. Prints every wrong one, and every true one that is not
 * decided, as a comment. */
corpus_tally corpus_try(graft_env *env, const corpus_rules *rules, corpus_kind kind,
                        const graft_trial_options *options);

/* How many rules the proof for all sizes (verify/sizes/symbolic.h) accepts; those of false rules
 * are printed as WRONG. Each is tried in a child that may take `limit_ns`. */
uint32_t corpus_try_symbolic(graft_env *env, const corpus_rules *rules, corpus_kind kind,
                             uint64_t limit_ns);
