/* shown_policy.h - what a policy makes of a model, as a file and as a page to look at. */
#pragma once

#include "emit/command/session.h"
#include "emit/report/results.h"

/* All borrowed. */
typedef struct graft_shown_policy {
    const graft_session_options *options; /* With the model. */
    const char *policy;                   /* Its file. */
    const char *out;                      /* The file for the rewritten model. */
    const char *page;
    const graft_results *methods; /* That it is compared with. */
    const char *dreams;           /* As in graft_report_page. */
} graft_shown_policy;

/* Does what `graft optimize MODEL OUT --policy FILE --report PAGE` does, without printing. Fails as
 * that does: GRAFT_UNSUPPORTED where the model leaves sizes open. */
GRAFT_MUST_USE graft_status graft_shown_policy_write(graft_env *env,
                                                     const graft_shown_policy *shown);
