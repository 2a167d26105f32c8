/* page.c - see page.h. */
#include "graph/base/page.h"

#include "graph/embed.h"

#include <string.h>

GRAFT_EMBED(page_style, "graph/base/page/page.css")
GRAFT_EMBED(page_shared, "graph/base/page/page.js")
GRAFT_EMBED(page_report, "graph/base/page/report.html")
GRAFT_EMBED(page_report_script, "graph/base/page/report.js")
GRAFT_EMBED(page_rules, "graph/base/page/rules.html")
GRAFT_EMBED(page_rules_script, "graph/base/page/rules.js")

static const struct {
    const char *text;
    const char *script;
} templates[] = {
    [GRAFT_PAGE_REPORT] = {graft_text_page_report, graft_text_page_report_script},
    [GRAFT_PAGE_RULES] = {graft_text_page_rules,  graft_text_page_rules_script },
};

/* In JSON a '<' can only be part of a string; as it stands it could end the element that holds
 * it. */
static void append_data(graft_buffer *page, const char *data)
{
    for (const char *next = strchr(data, '<'); next != NULL; next = strchr(data, '<')) {
        graft_buffer_append(page, data, (size_t)(next - data));
        graft_buffer_append(page, "\\u003c", 6);
        data = next + 1;
    }
    graft_buffer_append(page, data, strlen(data));
}

graft_status graft_page_write(graft_env *env, graft_page_kind kind, const char *data,
                              const char *path)
{
    const struct {
        const char *mark;
        const char *text; /* NULL: the data. */
    } parts[] = {
        {"{{style}}",  graft_text_page_style },
        {"{{data}}",   NULL                  },
        {"{{shared}}", graft_text_page_shared},
        {"{{script}}", templates[kind].script},
    }; /* In the order of the templates. */
    GRAFT_SCOPED(env->unit);
    graft_buffer page = {.arena = env->unit};
    const char *rest = templates[kind].text;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *at = strstr(rest, parts[i].mark);
        GRAFT_RETURN_IF(at == NULL, GRAFT_FAIL(env, GRAFT_INTERNAL, "a page has no place for %s",
                                               parts[i].mark));
        graft_buffer_append(&page, rest, (size_t)(at - rest));
        if (parts[i].text == NULL) {
            append_data(&page, data);
        } else {
            graft_buffer_append(&page, parts[i].text, strlen(parts[i].text));
        }
        rest = at + strlen(parts[i].mark);
    }
    graft_buffer_append(&page, rest, strlen(rest));
    return graft_file_write(env, path, page.data, page.size);
}
