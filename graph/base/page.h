/* page.h - pages to look at: one HTML file each that needs no other and asks nothing of a network.
 *
 * What a page says is data, in JSON; how it says it lies in graph/base/page/: a template, and the
 * style and the scripts that take its marks' places. The scripts write data as text, never as HTML,
 * and the data are embedded without a '<', so names from outside stay names. */
#pragma once

#include "file.h"

typedef enum graft_page_kind {
    GRAFT_PAGE_REPORT = 0, /* What became of a model. */
    GRAFT_PAGE_RULES = 1   /* A rule set. */
} graft_page_kind;

/* Writes the page of this kind; `data` is the object, in JSON, that its script reads. Fails as
 * graft_file_write does. */
GRAFT_MUST_USE graft_status graft_page_write(graft_env *env, graft_page_kind kind, const char *data,
                                             const char *path);
