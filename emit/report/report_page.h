/* report_page.h - what a search or a policy did to a model, as a page to look at
 * (docs/report.md). */
#pragma once

#include "emit/command/written.h"
#include "emit/report/results.h"
#include "emit/report/trace.h"

/* All borrowed. */
typedef struct graft_report_page {
    graft_session *session; /* Its environment's state is the rewritten graph. */
    const graft_session_options *options;
    const graft_written *written;
    const graft_trace *trace;
    const char *method;           /* How it was searched: the search's name, or a policy's file. */
    const char *policy;           /* A file; NULL: it was a search. */
    bool unchanged;               /* The model was written as it was. */
    bool cut;                     /* A limit on time ended the search. */
    uint32_t check_count;         /* Runs that were compared; 0: none. */
    double difference;            /* That they found. */
    const graft_results *methods; /* That the policy is compared with; NULL: none. */
    const char *dreams; /* JSON: how faithful its agent's dreams are; NULL: it has none. */
} graft_report_page;

/* Writes it. Fails as pricing does, and with GRAFT_IO when a file cannot be read or written. */
GRAFT_MUST_USE graft_status graft_report_page_write(graft_env *env, const graft_report_page *page,
                                                    const char *path);
