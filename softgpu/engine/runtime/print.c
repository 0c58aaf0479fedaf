/* vprintf and __assertfail of the device. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t MOST_OUTPUT = 1ull << 28; /* bytes that a launch may print */
enum { LONGEST_FORMAT = 1 << 20, LONGEST_NAME = 200 };

const char *read_string(struct worker *worker, int lane, uint64_t address, size_t longest, size_t *length,
                        const char **reason) {
  uint64_t left;
  const char *text = (const char *)locate(worker, lane, address, &left);
  if (!text) {
    *reason = "lies in no memory";
    return NULL;
  }
  const char *end = memchr(text, 0, left < longest ? left : longest);
  if (!end && left < longest) {
    *reason = "has no end in its memory";
    return NULL;
  }
  *length = end ? (size_t)(end - text) : longest;
  return text;
}

/* Add what one lane printed, as a whole, to the output of the launch. */
static int put(struct worker *worker, const struct text *text) {
  struct launch *launch = worker->launch;
  struct sg_result *result = launch->result;
  int failed = 0;
  if (!text->size) return 0;
  pthread_mutex_lock(&launch->lock);
  uint64_t needed = result->output_size + text->size;
  if (needed > result->output_capacity) {
    uint64_t larger = needed < 2 * result->output_capacity ? 2 * result->output_capacity : needed;
    char *output = needed > MOST_OUTPUT ? NULL : realloc(result->output, larger);
    if (output) {
      result->output = output;
      result->output_capacity = larger;
    } else {
      failed = -1;
    }
  }
  if (!failed) {
    memcpy(result->output + result->output_size, text->room->data, text->size);
    result->output_size = needed;
  }
  pthread_mutex_unlock(&launch->lock);
  if (failed) return fail(worker, SG_OUT_OF_MEMORY, 0, -1, "printf wrote more than %llu bytes, or there is no memory",
                          (unsigned long long)MOST_OUTPUT);
  return 0;
}

static int print_lane(struct worker *worker, int lane, uint32_t site, uint64_t format, uint64_t arguments,
                      uint32_t *result) {
  const char *reason;
  size_t length;
  struct text text = {&worker->text, 0};
  if (!format) {
    *result = UINT32_MAX; /* -1: there is no format */
    return 0;
  }
  const char *found = read_string(worker, lane, format, LONGEST_FORMAT, &length, &reason);
  if (!found)
    return fail_at(worker, SG_FAULT, site, lane, "the format of printf at 0x%llx %s", (unsigned long long)format,
                   reason);
  int count = format_text(worker, lane, site, found, length, arguments, &text);
  if (count < 0) return -1;
  *result = (uint32_t)count;
  return put(worker, &text);
}

int32_t print_helper(struct sg_env *env, const uint64_t *formats, const uint64_t *arguments, uint32_t mask,
                     uint32_t site, uint32_t *results) {
  struct worker *worker = worker_of(env);
  locale_t before = uselocale(worker->pool->locale);
  int failed = 0;
  for (uint32_t left = mask; left && !failed; left &= left - 1) {
    unsigned lane = lowest(left);
    failed = print_lane(worker, (int)lane, site, formats[lane], arguments[lane], &results[lane]);
  }
  uselocale(before);
  return failed;
}

/* A string of an assertion, or a sign that it cannot be read. */
static const char *name(struct worker *worker, int lane, uint64_t address, size_t *length) {
  const char *reason;
  const char *text = read_string(worker, lane, address, LONGEST_NAME, length, &reason);
  if (!text) *length = 1;
  return text ? text : "?";
}

int32_t assert_helper(struct sg_env *env, const uint64_t *message, const uint64_t *file, const uint32_t *line,
                      const uint64_t *function, uint32_t mask, uint32_t site) {
  struct worker *worker = worker_of(env);
  if (!mask) return 0;
  int lane = (int)lowest(mask);
  size_t message_length, file_length, function_length;
  const char *message_text = name(worker, lane, message[lane], &message_length);
  const char *file_text = name(worker, lane, file[lane], &file_length);
  const char *function_text = name(worker, lane, function[lane], &function_length);
  return fail_at(worker, SG_ASSERT, site, lane, "assertion `%.*s` failed in %.*s, %.*s:%u", (int)message_length,
                 message_text, (int)function_length, function_text, (int)file_length, file_text, line[lane]);
}
