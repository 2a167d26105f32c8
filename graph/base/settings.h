/* settings.h - YAML documents (libyaml) as a read-only tree, with errors that name file and line.
 * Used for rule families, training settings and users' rules. */
#pragma once

#include "env.h"

typedef enum { GRAFT_YAML_SCALAR, GRAFT_YAML_SEQUENCE, GRAFT_YAML_MAPPING } graft_yaml_kind;

typedef struct graft_yaml graft_yaml;
struct graft_yaml {
    graft_yaml_kind kind;
    uint32_t line;           /* 1-based; of a mapping's member, the line of its key. */
    const char *file;        /* For messages. */
    const char *key;         /* Name in the mapping that holds it; NULL elsewhere. */
    const char *text;        /* Scalars, never NULL there; "" for `key:` with nothing behind. */
    uint32_t count;          /* Children of sequences and mappings. */
    const graft_yaml *items; /* `count` of them, in document order. */
};

/* Parses one document into `arena`. GRAFT_BAD_INPUT "file:line: ..." for malformed YAML, duplicate
 * keys, keys that are not texts, anchors, aliases and tags (not used by Graft), no or more than one
 * document, zero bytes in a text, nesting deeper than 32, more than 2^20 values; GRAFT_IO when the
 * file cannot be read. Bytes that are not UTF-8 or UTF-16 are reported by offset: "file: byte N".
 */
GRAFT_MUST_USE graft_status graft_yaml_read(graft_env *env, graft_arena *arena, const char *path,
                                            const graft_yaml **root);
/* Same, from memory; `name` stands for the path in messages. */
GRAFT_MUST_USE graft_status graft_yaml_parse(graft_env *env, graft_arena *arena, const char *name,
                                             const void *data, size_t size,
                                             const graft_yaml **root);
/* What is done with a document of many. */
typedef graft_status graft_yaml_take(graft_env *env, graft_arena *arena, void *context,
                                     const graft_yaml *root);
/* Reads a file that has a document a line, in `arena`, and gives them to `take` in their order; one
 * that is not there has no lines. Fails as graft_yaml_parse and `take` do, naming the line. */
GRAFT_MUST_USE graft_status graft_yaml_read_lines(graft_env *env, graft_arena *arena,
                                                  const char *path, graft_yaml_take *take,
                                                  void *context);
/* Fails with GRAFT_BAD_INPUT and "file:line: " of `node` before the message. */
graft_status graft_yaml_fail(graft_env *env, const graft_yaml *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The member `key` of a mapping, or NULL (also when `mapping` is something else). */
const graft_yaml *graft_yaml_find(const graft_yaml *mapping, const char *key);
/* Required members, with a message that names file, line and key when absent, empty, of another
 * type or outside [least, most]. Numbers are decimal, the whole text, and finite. For an optional
 * member ask graft_yaml_find first. */
GRAFT_MUST_USE graft_status graft_yaml_text(graft_env *env, const graft_yaml *mapping,
                                            const char *key, const char **value);
GRAFT_MUST_USE graft_status graft_yaml_integer(graft_env *env, const graft_yaml *mapping,
                                               const char *key, int64_t least, int64_t most,
                                               int64_t *value);
GRAFT_MUST_USE graft_status graft_yaml_real(graft_env *env, const graft_yaml *mapping,
                                            const char *key, double least, double most,
                                            double *value);
/* Exactly `true` or `false`. */
GRAFT_MUST_USE graft_status graft_yaml_bool(graft_env *env, const graft_yaml *mapping,
                                            const char *key, bool *value);
/* Fails when the mapping has a key that is not in `allowed` (NULL-terminated). */
GRAFT_MUST_USE graft_status graft_yaml_only(graft_env *env, const graft_yaml *mapping,
                                            const char *const *allowed);
