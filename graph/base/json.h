/* json.h - JSON: lines on stdout, one object a line, and the data of pages; keys in the order they
 * are added. Numbers are printed with the fewest digits that read back to the same double; NaN and
 * infinities as null. */
#pragma once

#include "file.h"

typedef struct {
    graft_buffer text;
    bool has_member;
} graft_json;

void graft_json_begin(graft_json *json, graft_arena *arena); /* Opens the object. */
void graft_json_string(graft_json *json, const char *key, const char *value); /* NULL: null. */
void graft_json_integer(graft_json *json, const char *key, int64_t value);
void graft_json_number(graft_json *json, const char *key, double value);
void graft_json_bool(graft_json *json, const char *key, bool value);
/* Several members at once, "name=%s steps=%u ns=%g": keys, and how their values are given: %s a text
 * or NULL, (%s) what is JSON already, %d, %u, %lld, %llu or %zu an integer, %g a number, %c
 * whether. */
void graft_json_add(graft_json *json, const char *members, ...)
    __attribute__((format(printf, 2, 3)));
/* An object of such members, made in `arena`, as a line. */
void graft_json_print(graft_arena *arena, FILE *out, const char *members, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, appended to a list of objects, in its arena. */
void graft_json_item(graft_buffer *list, const char *members, ...)
    __attribute__((format(printf, 2, 3)));
void graft_json_strings(graft_json *json, const char *key, const char *const *values,
                        uint32_t count);                                   /* A list. */
void graft_json_raw(graft_json *json, const char *key, const char *value); /* Already JSON. */
const char *graft_json_line(graft_json *json);    /* Closes it; the line, in the arena. */
void graft_json_end(graft_json *json, FILE *out); /* Closes it and prints the line. */

/* Objects in objects. */
const char *graft_json_close(graft_json *json); /* Closes it; its text, in the arena. */
/* Closes it and appends it to a list of such, which begins as an empty buffer. */
void graft_json_append(graft_json *json, graft_buffer *list);
/* Adds such a list as an array. */
void graft_json_list(graft_json *json, const char *key, const graft_buffer *list);
