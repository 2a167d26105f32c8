/* settings.h - YAML documents (libyaml) as a read-only tree, with errors that name file and line.
 * Used for rule families, training settings and users' rules. */
#ifndef GRAFT_SETTINGS_H
#define GRAFT_SETTINGS_H

#include "env.h"

typedef enum { GRAFT_YAML_SCALAR, GRAFT_YAML_SEQUENCE, GRAFT_YAML_MAPPING } graft_yaml_kind;

typedef struct graft_yaml graft_yaml;
struct graft_yaml {
    graft_yaml_kind kind;
    uint32_t line;            /* 1-based. */
    const char *file;         /* For messages. */
    const char *key;          /* Name in the mapping that holds it; NULL elsewhere. */
    const char *text;         /* Scalars. */
    uint32_t count;           /* Children of sequences and mappings. */
    const graft_yaml *items;  /* `count` of them, in document order. */
};

/* Parses one document. GRAFT_BAD_INPUT "file:line: ..." for malformed YAML, duplicate keys, anchors
 * and aliases (not used by Graft), more than one document, nesting deeper than 32. */
GRAFT_MUST_USE graft_status graft_yaml_read(graft_env *env, graft_arena *arena, const char *path,
                                            const graft_yaml **root);
/* Same, from memory; `name` stands for the path in messages. */
GRAFT_MUST_USE graft_status graft_yaml_parse(graft_env *env, graft_arena *arena, const char *name,
                                             const void *data, size_t size,
                                             const graft_yaml **root);
/* The member `key` of a mapping, or NULL. */
const graft_yaml *graft_yaml_find(const graft_yaml *mapping, const char *key);
/* Required members, with a message that names file, line and key when absent or of another type. */
GRAFT_MUST_USE graft_status graft_yaml_text(graft_env *env, const graft_yaml *mapping,
                                            const char *key, const char **value);
GRAFT_MUST_USE graft_status graft_yaml_integer(graft_env *env, const graft_yaml *mapping,
                                               const char *key, int64_t least, int64_t most,
                                               int64_t *value);
GRAFT_MUST_USE graft_status graft_yaml_real(graft_env *env, const graft_yaml *mapping,
                                            const char *key, double least, double most,
                                            double *value);
/* Fails when the mapping has a key that is not in `allowed` (NULL-terminated). */
GRAFT_MUST_USE graft_status graft_yaml_only(graft_env *env, const graft_yaml *mapping,
                                            const char *const *allowed);

#endif
