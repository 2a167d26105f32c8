/* database_text.c - the text of a cost database (see database_text.h).
 *
 * The reader takes exactly what the writer writes, key by key: the file is a machine's, and a file
 * that differs was damaged. */
#include "cost/database/database_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { VERSION = 1 };

static const char *const source_names[] = {"measured", "estimated"};

const char *graft_cost_source_name(const graft_cost_entry *entry)
{
    return source_names[entry->source];
}

/* ----------------------------------------------------------------- writing */

static void print_text(graft_buffer *out, const char *text)
{
    graft_buffer_printf(out, "\"");
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\') {
            graft_buffer_printf(out, "\\%c", byte);
        } else if (byte < ' ') {
            graft_buffer_printf(out, "\\u%04x", byte);
        } else {
            graft_buffer_append(out, c, 1);
        }
    }
    graft_buffer_printf(out, "\"");
}

static void print_record(graft_buffer *out, const graft_database_record *record)
{
    const graft_cost_entry *e = &record->entry;
    graft_buffer signature = {.arena = out->arena};
    graft_signature_print(&record->signature, &signature);
    graft_buffer_printf(out, "{\"device\":");
    print_text(out, record->device);
    graft_buffer_printf(out, ",\"library\":");
    print_text(out, record->library);
    graft_buffer_printf(out, ",\"signature\":");
    print_text(out, signature.data);
    graft_buffer_printf(out, ",\"implementation\":");
    print_text(out, e->implementation);
    graft_buffer_printf(out,
                        ",\"median_ns\":%.4f,\"spread_ns\":%.4f,\"rounds\":%u,\"source\":\"%s\"}\n",
                        e->median_ns, e->spread_ns, e->rounds, graft_cost_source_name(e));
}

/* Signatures are compared by what distinguishes them, operators together. */
static int compare_records(const void *a, const void *b)
{
    const graft_database_record *const *left = a;
    const graft_database_record *const *right = b;
    int order = strcmp((*left)->device, (*right)->device);
    if (order == 0) {
        order = strcmp((*left)->library, (*right)->library);
    }
    if (order == 0) {
        order = (int)(*left)->signature.op - (int)(*right)->signature.op;
    }
    if (order == 0) {
        order = graft_signature_compare(&(*left)->signature, &(*right)->signature);
    }
    return order;
}

void graft_database_print(graft_arena *arena, const graft_database_record **records, uint32_t count,
                          graft_buffer *text)
{
    qsort(records, count, sizeof(records[0]), compare_records);
    *text = (graft_buffer){.arena = arena};
    graft_buffer_printf(text, "{\"graft_costs\":%d}\n", VERSION);
    for (uint32_t i = 0; i < count; i++) {
        print_record(text, records[i]);
    }
    uint64_t checksum = XXH3_64bits(text->data, text->size);
    graft_buffer_printf(text, "{\"entries\":%u,\"xxh3\":\"%016" PRIx64 "\"}\n", count, checksum);
}

/* ----------------------------------------------------------------- reading */

typedef struct {
    graft_env *env;
    const char *name;
    const char *at;
    uint32_t line;
} reader;

static graft_status fail_line(const reader *r, const char *expected)
{
    return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT, "%s:%u: damaged cost database: expected %s", r->name,
                      r->line, expected);
}

static graft_status expect(reader *r, const char *token)
{
    size_t length = strlen(token);
    if (strncmp(r->at, token, length) != 0) {
        return fail_line(r, token);
    }
    r->at += length;
    return GRAFT_OK;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *place = c == '\0' ? NULL : strchr(digits, c);
    return place == NULL ? -1 : (int)(place - digits);
}

/* One character of a text, after a backslash; control characters are written with two hex digits.
 */
static bool read_escape(reader *r, char *c)
{
    if (*r->at == '"' || *r->at == '\\') {
        *c = *r->at++;
        return true;
    }
    if (strncmp(r->at, "u00", 3) != 0) {
        return false;
    }
    int high = hex_digit(r->at[3]);
    int low = high < 0 ? -1 : hex_digit(r->at[4]);
    *c = (char)(high * 16 + low);
    r->at += low < 0 ? 0 : 5;
    return low >= 0 && *c > 0;
}

/* A quoted text, into scratch memory. */
static graft_status read_text(reader *r, const char **text)
{
    GRAFT_PASS(expect(r, "\""));
    const char *end = r->at + strcspn(r->at, "\"\n");
    while (*end == '"' && end[-1] == '\\') {
        end += 1 + strcspn(end + 1, "\"\n"); /* Or too far, behind a quoted backslash. */
    }
    char *out = graft_arena_alloc(r->env->scratch, (size_t)(end - r->at) + 1);
    *text = out;
    while (*r->at != '"') {
        char c = *r->at++;
        if (c == '\0' || c == '\n' || (c == '\\' && !read_escape(r, &c))) {
            return fail_line(r, "a text");
        }
        *out++ = c;
    }
    *out = '\0';
    r->at++;
    return GRAFT_OK;
}

static graft_status read_time(reader *r, bool positive, double *value)
{
    char *end = NULL;
    errno = 0;
    double number = isdigit((unsigned char)*r->at) != 0 ? strtod(r->at, &end) : -1.0;
    if (errno != 0 || !isfinite(number) || number < 0.0 || (positive && number == 0.0)) {
        return fail_line(r, "a time in nanoseconds");
    }
    r->at = end;
    *value = number;
    return GRAFT_OK;
}

static graft_status read_count(reader *r, uint32_t *value)
{
    char *end = NULL;
    errno = 0;
    unsigned long number = isdigit((unsigned char)*r->at) != 0 ? strtoul(r->at, &end, 10) : 0;
    if (end == NULL || errno != 0 || number > UINT32_MAX) {
        return fail_line(r, "a number");
    }
    r->at = end;
    *value = (uint32_t)number;
    return GRAFT_OK;
}

static graft_status read_source(reader *r, uint8_t *source)
{
    for (uint8_t i = 0; i < 2; i++) {
        size_t length = strlen(source_names[i]);
        if (strncmp(r->at, source_names[i], length) == 0) {
            *source = i;
            r->at += length;
            return GRAFT_OK;
        }
    }
    return fail_line(r, "\"measured\" or \"estimated\"");
}

static graft_status read_implementation(reader *r, graft_cost_entry *entry)
{
    const char *text = "";
    graft_status status = read_text(r, &text);
    if (status == GRAFT_OK && strlen(text) >= sizeof(entry->implementation)) {
        status = fail_line(r, "a shorter name of an implementation");
    }
    if (status == GRAFT_OK) {
        memcpy(entry->implementation, text, strlen(text) + 1);
    }
    return status;
}

static graft_status read_record(reader *r, graft_database_record *record)
{
    const char *signature = NULL;
    graft_cost_entry *e = &record->entry;
    memset(record, 0, sizeof(*record));
    GRAFT_PASS(expect(r, "{\"device\":"));
    GRAFT_PASS(read_text(r, &record->device));
    GRAFT_PASS(expect(r, ",\"library\":"));
    GRAFT_PASS(read_text(r, &record->library));
    GRAFT_PASS(expect(r, ",\"signature\":"));
    GRAFT_PASS(read_text(r, &signature));
    GRAFT_PASS_IN(r->env, graft_signature_parse(r->env, signature, &record->signature), "%s:%u",
                  r->name, r->line);
    GRAFT_PASS(expect(r, ",\"implementation\":"));
    GRAFT_PASS(read_implementation(r, e));
    GRAFT_PASS(expect(r, ",\"median_ns\":"));
    GRAFT_PASS(read_time(r, true, &e->median_ns));
    GRAFT_PASS(expect(r, ",\"spread_ns\":"));
    GRAFT_PASS(read_time(r, false, &e->spread_ns));
    GRAFT_PASS(expect(r, ",\"rounds\":"));
    GRAFT_PASS(read_count(r, &e->rounds));
    GRAFT_PASS(expect(r, ",\"source\":\""));
    GRAFT_PASS(read_source(r, &e->source));
    GRAFT_PASS(expect(r, "\"}\n"));
    e->flops = graft_signature_flops(&record->signature);
    e->bytes = graft_signature_bytes(&record->signature);
    return GRAFT_OK;
}

static graft_status read_checksum(reader *r, uint64_t *checksum)
{
    enum { DIGITS = 16 };
    *checksum = 0;
    for (int i = 0; i < DIGITS; i++) {
        int digit = hex_digit(*r->at);
        if (digit < 0) {
            return fail_line(r, "a checksum");
        }
        *checksum = *checksum * DIGITS + (uint64_t)digit;
        r->at++;
    }
    return GRAFT_OK;
}

static graft_status read_last_line(reader *r, uint32_t *count, uint64_t *checksum)
{
    GRAFT_PASS(expect(r, "{\"entries\":"));
    GRAFT_PASS(read_count(r, count));
    GRAFT_PASS(expect(r, ",\"xxh3\":\""));
    GRAFT_PASS(read_checksum(r, checksum));
    return expect(r, "\"}\n");
}

/* The last line is whole and its checksum is that of what stands before it. */
static graft_status check_end(reader *r, const char *text, size_t size, uint32_t *count)
{
    bool whole = text[size - 1] == '\n' && strlen(text) == size;
    const char *before = whole ? memrchr(text, '\n', size - 1) : NULL;
    uint64_t checksum = 0;
    reader last = {.env = r->env, .name = r->name, .at = before == NULL ? "" : before + 1};
    if (read_last_line(&last, count, &checksum) != GRAFT_OK || last.at != text + size) {
        graft_env_clear(r->env);
        return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT,
                          "%s: the cost database is cut off: its last line is missing", r->name);
    }
    if (XXH3_64bits(text, (size_t)(before + 1 - text)) != checksum) {
        return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT,
                          "%s: the cost database is damaged: its checksum differs", r->name);
    }
    return GRAFT_OK;
}

static graft_status check_version(reader *r, const char *text)
{
    static const char key[] = "{\"graft_costs\":";
    uint32_t version = 0;
    if (strncmp(text, key, sizeof(key) - 1) != 0) {
        return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT, "%s: not a cost database of Graft", r->name);
    }
    r->at = text + sizeof(key) - 1;
    graft_status status = read_count(r, &version);
    if (status == GRAFT_OK && version != VERSION) {
        return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT,
                          "%s: a cost database of version %u; this program reads version %d",
                          r->name, version, VERSION);
    }
    return status == GRAFT_OK ? expect(r, "}\n") : status;
}

graft_status graft_database_parse_device(graft_env *env, const char *name, const char *text,
                                         const char **device)
{
    reader r = {.env = env, .name = name, .at = text, .line = 1};
    static const char key[] = "{\"device\":";
    *device = NULL;
    GRAFT_PASS(check_version(&r, text));
    r.line++;
    if (strncmp(r.at, key, sizeof(key) - 1) == 0) {
        r.at += sizeof(key) - 1;
        GRAFT_PASS(read_text(&r, device));
    }
    return GRAFT_OK;
}

graft_status graft_database_parse(graft_env *env, const char *name, const char *text, size_t size,
                                  graft_record_receiver receive, void *context)
{
    GRAFT_SCOPED(env->scratch);
    reader r = {.env = env, .name = name, .at = text, .line = 1};
    uint32_t count = 0;
    if (size == 0) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: the cost database is empty", name);
    }
    GRAFT_PASS(check_version(&r, text));
    GRAFT_PASS(check_end(&r, text, size, &count));
    graft_database_record *records =
        GRAFT_NEW(env->scratch, graft_database_record, (size / 64 < count ? 0 : count));
    if (size / 64 < count) { /* A record has more bytes than that. */
        return fail_line(&r, "fewer entries");
    }
    for (uint32_t i = 0; i < count; i++) {
        r.line++;
        GRAFT_PASS(read_record(&r, &records[i]));
    }
    r.line++;
    GRAFT_PASS(expect(&r, "{\"entries\":"));
    for (uint32_t i = 0; i < count; i++) {
        receive(context, &records[i]);
    }
    return GRAFT_OK;
}
