/* A strict reader of JSON (RFC 8259), which goes along a text once. The first error is kept, and all that follow say
 * no. */
#ifndef SOFTGPU_JSON_H
#define SOFTGPU_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
  const char *at, *end;
  bool failed;
};

/* Bytes of the text itself. */
struct json_text {
  const char *start;
  size_t length;
};

struct json json_begin(const char *text, size_t length);
bool json_finish(struct json *json); /* whether that was all, and no error */

/* json_open(json, '{'), then json_next for as long as it says that there is one more; '[' likewise. `*first` is set by
 * json_open and belongs to json_next. */
bool json_open(struct json *json, char bracket, bool *first);
bool json_next(struct json *json, char bracket, bool *first);

/* Elements of the array that comes next, which is not gone past; 0 after an error. */
size_t json_count(struct json *json);

struct json_text json_string(struct json *json); /* an error with escapes, which names do not need */
struct json_text json_key(struct json *json);    /* a name and the colon */
bool json_is(struct json_text text, const char *word);
uint64_t json_unsigned(struct json *json);
int64_t json_signed(struct json *json);
void json_skip(struct json *json); /* a value of any kind */
void json_fail(struct json *json);

#endif
