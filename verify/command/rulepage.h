/* rulepage.h - rules as the data of pages: searched in a browser, or shown where they were used. */
#pragma once

#include "graph/base/file.h"
#include "graph/rule/rulefile.h"

/* Appends an entry of the set to a list of JSON objects: name, id, family, the rule as a line, its
 * classes, the operators that it saves, its picture (rulewords.h), what Graft says of it in words
 * and, of its certificate, what is counted. */
void graft_rulepage_append(graft_env *env, const graft_ruleset *set, const graft_rule_entry *entry,
                           graft_buffer *list);
/* Writes the page of the whole set, which came from `file`. Fails as graft_file_write does. */
GRAFT_MUST_USE graft_status graft_rulepage_write(graft_env *env, const graft_ruleset *set,
                                                 const char *file, const char *path);
