/* A strict reader of JSON. */
#include "json.h"

#include <string.h>

enum { DEEPEST = 32 };

struct json json_begin(const char *text, size_t length) { return (struct json){text, text + length, false}; }

void json_fail(struct json *json) { json->failed = true; }

static char peek(struct json *json) {
  while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
    json->at++;
  return !json->failed && json->at < json->end ? *json->at : 0;
}

static bool take(struct json *json, char byte) {
  if (peek(json) != byte || !byte) return false;
  json->at++;
  return true;
}

static void need(struct json *json, char byte) {
  if (!take(json, byte)) json_fail(json);
}

bool json_finish(struct json *json) {
  peek(json);
  return !json->failed && json->at == json->end;
}

bool json_open(struct json *json, char bracket, bool *first) {
  *first = true;
  need(json, bracket);
  return !json->failed;
}

bool json_next(struct json *json, char bracket, bool *first) {
  if (json->failed || take(json, bracket == '{' ? '}' : ']')) return false;
  if (!*first) need(json, ',');
  *first = false;
  return !json->failed;
}

size_t json_count(struct json *json) {
  struct json ahead = *json;
  bool first;
  size_t count = 0;
  for (json_open(&ahead, '[', &first); json_next(&ahead, '[', &first); count++) json_skip(&ahead);
  if (ahead.failed) json_fail(json);
  return json->failed ? 0 : count;
}

struct json_text json_string(struct json *json) {
  need(json, '"');
  struct json_text text = {json->at, 0};
  if (json->failed) return text;
  for (; json->at < json->end && *json->at != '"'; json->at++)
    if (*json->at == '\\' || (unsigned char)*json->at < ' ') break;
  text.length = (size_t)(json->at - text.start);
  if (json->at < json->end && *json->at == '"')
    json->at++;
  else
    json_fail(json);
  return text;
}

struct json_text json_key(struct json *json) {
  struct json_text text = json_string(json);
  need(json, ':');
  return text;
}

bool json_is(struct json_text text, const char *word) {
  return strlen(word) == text.length && !memcmp(text.start, word, text.length);
}

uint64_t json_unsigned(struct json *json) {
  char byte = peek(json);
  uint64_t value = 0;
  const char *start = json->at;
  if (byte < '0' || byte > '9') json_fail(json);
  for (; !json->failed && json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++)
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *json->at - '0', &value))
      json_fail(json);
  bool more = json->at < json->end && strchr(".eE", *json->at) && *json->at; /* not a whole number */
  if (more || (byte == '0' && json->at - start > 1)) json_fail(json);
  return json->failed ? 0 : value;
}

int64_t json_signed(struct json *json) {
  bool negative = take(json, '-');
  uint64_t value = json_unsigned(json);
  if (value > (uint64_t)INT64_MAX) json_fail(json);
  return json->failed ? 0 : negative ? -(int64_t)value : (int64_t)value;
}

static void skip_string(struct json *json) {
  need(json, '"');
  while (!json->failed && json->at < json->end && *json->at != '"') {
    if ((unsigned char)*json->at < ' ' || (*json->at == '\\' && ++json->at == json->end)) json_fail(json);
    if (!json->failed) json->at++;
  }
  need(json, '"');
}

/* A number, true, false or null: only told from what ends it. */
static void skip_word(struct json *json) {
  size_t length = 0;
  while (json->at < json->end && *json->at && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *json->at)) {
    json->at++;
    length++;
  }
  if (!length) json_fail(json);
}

static void skip(struct json *json, int depth) {
  char byte = peek(json);
  bool first;
  if (byte == '"') {
    skip_string(json);
  } else if (byte != '{' && byte != '[') {
    skip_word(json);
  } else if (depth == DEEPEST) {
    json_fail(json);
  } else if (json_open(json, byte, &first)) {
    while (json_next(json, byte, &first)) {
      if (byte == '{') {
        skip_string(json);
        need(json, ':');
      }
      skip(json, depth + 1);
    }
  }
}

void json_skip(struct json *json) { skip(json, 0); }
