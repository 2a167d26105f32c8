/* onnx_size.c - open sizes that are named by how they follow from others (see onnx.h). Exporters
 * write what their tracer knows: "past_length + sequence_length", "2*s0", "(s0 - 1)//2 + 1". */
#include "graph/onnx/onnx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 16, MOST = INT32_MAX / 2 };

typedef struct {
    const char *at;
    const graft_model_size *sizes;
    uint32_t count;
    uint32_t depth;
    uint32_t met; /* Sizes that it names. */
    bool failed;  /* No expression, a size that is not known, or a number that is too large. */
} formula;

static bool take(formula *f, const char *sign)
{
    while (*f->at == ' ') {
        f->at++;
    }
    const size_t length = strlen(sign);
    const bool found = strncmp(f->at, sign, length) == 0;
    f->at += found ? length : 0;
    return found;
}

static int64_t in_range(formula *f, int64_t value)
{
    f->failed = f->failed || value > MOST || value < -MOST;
    return f->failed ? 0 : value;
}

static int64_t known_size(formula *f)
{
    const size_t length = strcspn(f->at, " +-*/()");
    for (uint32_t i = 0; i < f->count; i++) {
        if (strlen(f->sizes[i].name) == length && strncmp(f->sizes[i].name, f->at, length) == 0) {
            f->at += length;
            f->met++;
            return f->sizes[i].value;
        }
    }
    f->failed = true;
    return 0;
}

static int64_t read_sum(formula *f);

static int64_t read_factor(formula *f)
{
    if (take(f, "(") && f->depth < DEPTH_MOST) {
        f->depth++;
        const int64_t value = read_sum(f);
        f->depth--;
        f->failed = f->failed || !take(f, ")");
        return value;
    }
    if (isdigit((unsigned char)*f->at)) {
        char *end = NULL;
        const long long value = strtoll(f->at, &end, 10);
        f->at = end;
        return in_range(f, value);
    }
    return known_size(f);
}

/* Quotients are rounded down, and only of what is not negative. */
static int64_t read_product(formula *f)
{
    int64_t value = read_factor(f);
    while (!f->failed) {
        if (take(f, "*")) {
            value = in_range(f, value * read_factor(f));
        } else if (take(f, "//") || take(f, "/")) {
            const int64_t by = read_factor(f);
            f->failed = f->failed || by < 1 || value < 0;
            value = f->failed ? 0 : value / by;
        } else {
            break;
        }
    }
    return value;
}

static int64_t read_sum(formula *f)
{
    int64_t value = read_product(f);
    while (!f->failed) {
        if (take(f, "+")) {
            value = in_range(f, value + read_product(f));
        } else if (take(f, "-")) {
            value = in_range(f, value - read_product(f));
        } else {
            break;
        }
    }
    return value;
}

bool graft_onnx_is_formula(const char *name) { return strpbrk(name, "+-*/") != NULL; }

int32_t graft_onnx_evaluate_size(const char *name, const graft_model_size *sizes, uint32_t count)
{
    formula f = {.at = name, .sizes = sizes, .count = count};
    const int64_t value = read_sum(&f);
    (void)take(&f, ""); /* Spaces. */
    return f.failed || *f.at != '\0' || value < 0 || f.met == 0 ? -1 : (int32_t)value;
}
