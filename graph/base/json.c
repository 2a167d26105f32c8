/* json.c - JSON (RFC 8259). */
#include "graph/base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLE_TEXT_BYTES = 32, DOUBLE_MOST_DIGITS = 17 };

/* The length of the valid UTF-8 sequence at `text`, or 0. Overlong forms, surrogates and numbers
 * above U+10FFFF are not valid (Unicode 15, table 3-7). */
static size_t utf8_length(const unsigned char *text)
{
    unsigned char first = text[0];
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < length; i++) { /* The terminator is no continuation: stops there. */
        if (text[i] < least || text[i] > most) {
            return 0;
        }
        least = 0x80;
        most = 0xbf;
    }
    return length;
}

static void append_escaped(graft_buffer *out, char c)
{
    static const char named[] = "\"\\\n\t";
    static const char letters[] = "\"\\nt";
    const char *at = strchr(named, c);
    if (at != NULL) {
        graft_buffer_printf(out, "\\%c", letters[at - named]);
    } else {
        graft_buffer_printf(out, "\\u%04x", (unsigned char)c);
    }
}

static void append_quoted(graft_buffer *out, const char *value)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD, for bytes that are not UTF-8. */
    const unsigned char *text = (const unsigned char *)value;
    graft_buffer_append(out, "\"", 1);
    while (*text != '\0') {
        size_t length = utf8_length(text);
        if (length == 0) {
            graft_buffer_append(out, replacement, sizeof(replacement) - 1);
            length = 1;
        } else if (*text < 0x20 || *text == '"' || *text == '\\' || *text == 0x7f) {
            append_escaped(out, (char)*text);
        } else {
            graft_buffer_append(out, text, length);
        }
        text += length;
    }
    graft_buffer_append(out, "\"", 1);
}

static void append_key(graft_json *json, const char *key)
{
    if (json->has_member) {
        graft_buffer_append(&json->text, ", ", 2);
    }
    json->has_member = true;
    append_quoted(&json->text, key);
    graft_buffer_append(&json->text, ": ", 2);
}

void graft_json_begin(graft_json *json, graft_arena *arena)
{
    *json = (graft_json){.text = {.arena = arena}};
    graft_buffer_append(&json->text, "{", 1);
}

void graft_json_string(graft_json *json, const char *key, const char *value)
{
    if (value == NULL) {
        graft_json_raw(json, key, "null");
        return;
    }
    append_key(json, key);
    append_quoted(&json->text, value);
}

void graft_json_integer(graft_json *json, const char *key, int64_t value)
{
    append_key(json, key);
    graft_buffer_printf(&json->text, "%" PRId64, value);
}

void graft_json_number(graft_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        graft_json_raw(json, key, "null");
        return;
    }
    char text[DOUBLE_TEXT_BYTES];
    for (int digits = 1; digits <= DOUBLE_MOST_DIGITS; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) { /* 17 digits always read back. */
            break;
        }
    }
    graft_json_raw(json, key, text);
}

void graft_json_bool(graft_json *json, const char *key, bool value)
{
    graft_json_raw(json, key, value ? "true" : "false");
}

/* Adds the next value, given as `how` says; returns what is behind that. */
static const char *add_value(graft_json *json, const char *key, const char *how, va_list *values)
{
    const bool is_json = *how == '(';
    const char *conversion = how + is_json + 1;
    const size_t wide = strspn(conversion, "lz");
    conversion += wide;
    switch (*conversion) {
    case 's':
        (is_json ? graft_json_raw : graft_json_string)(json, key, va_arg(*values, const char *));
        break;
    case 'g':
        graft_json_number(json, key, va_arg(*values, double));
        break;
    case 'c':
        graft_json_bool(json, key, va_arg(*values, int) != 0);
        break;
    case 'd':
        graft_json_integer(json, key,
                           wide > 0 ? (int64_t)va_arg(*values, long long) : va_arg(*values, int));
        break;
    default:
        assert(*conversion == 'u');
        graft_json_integer(json, key,
                           wide == 0   ? (int64_t)va_arg(*values, unsigned)
                           : wide == 1 ? (int64_t)va_arg(*values, size_t)
                                       : (int64_t)va_arg(*values, unsigned long long));
    }
    return conversion + 1 + is_json;
}

static void add_members(graft_json *json, const char *members, va_list *values)
{
    enum { KEY_BYTES = 64 };
    while (*members != '\0') {
        char key[KEY_BYTES];
        const size_t length = strcspn(members, "=");
        assert(length < sizeof key && members[length] == '=');
        memcpy(key, members, length);
        key[length] = '\0';
        members = add_value(json, key, members + length + 1, values);
        members += *members == ' ';
    }
}

void graft_json_add(graft_json *json, const char *members, ...)
{
    va_list values;
    va_start(values, members);
    add_members(json, members, &values);
    va_end(values);
}

void graft_json_print(graft_arena *arena, FILE *out, const char *members, ...)
{
    graft_json json;
    va_list values;
    graft_json_begin(&json, arena);
    va_start(values, members);
    add_members(&json, members, &values);
    va_end(values);
    graft_json_end(&json, out);
}

void graft_json_item(graft_buffer *list, const char *members, ...)
{
    graft_json json;
    va_list values;
    graft_json_begin(&json, list->arena);
    va_start(values, members);
    add_members(&json, members, &values);
    va_end(values);
    graft_json_append(&json, list);
}

void graft_json_strings(graft_json *json, const char *key, const char *const *values,
                        uint32_t count)
{
    append_key(json, key);
    graft_buffer_append(&json->text, "[", 1);
    for (uint32_t i = 0; i < count; i++) {
        graft_buffer_append(&json->text, ", ", i == 0 ? 0 : 2);
        append_quoted(&json->text, values[i]);
    }
    graft_buffer_append(&json->text, "]", 1);
}

void graft_json_raw(graft_json *json, const char *key, const char *value)
{
    append_key(json, key);
    graft_buffer_append(&json->text, value, strlen(value));
}

const char *graft_json_line(graft_json *json)
{
    graft_buffer_append(&json->text, "}\n", 2);
    return json->text.data;
}

/* Flushed at once: whoever reads the lines sees each when it is made. Write errors stay in the
 * stream, where the program's end finds them. */
void graft_json_end(graft_json *json, FILE *out)
{
    (void)graft_json_line(json);
    (void)fwrite(json->text.data, 1, json->text.size, out);
    (void)fflush(out);
}

const char *graft_json_close(graft_json *json)
{
    graft_buffer_append(&json->text, "}", 1);
    return json->text.data;
}

void graft_json_append(graft_json *json, graft_buffer *list)
{
    const char *text = graft_json_close(json);
    graft_buffer_printf(list, "%s%s", list->size > 0 ? ",\n" : "", text);
}

void graft_json_list(graft_json *json, const char *key, const graft_buffer *list)
{
    append_key(json, key);
    graft_buffer_append(&json->text, "[", 1);
    graft_buffer_append(&json->text, list->data, list->size);
    graft_buffer_append(&json->text, "]", 1);
}
