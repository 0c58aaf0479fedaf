/* PTX ISA, "Kernel and Function Directives: .entry" and "Kernel Function Parameters". Only the directive's own text is
   understood; all before it is only divided into words, marks and strings, so that none is found in a remark. */
#include "ptx_params.h"

#include <stdbool.h>
#include <string.h>

enum { LARGEST_BLOCK = 32764 }; /* bytes of parameters that a kernel may have */

struct type {
  const char *name;
  unsigned bytes;
};

static const struct type types[] = {
  {".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2},   {".s16", 2}, {".f16", 2}, {".b32", 4}, {".u32", 4},
  {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}, {".f16x2", 4}, {".b128", 16}};

/* Text from `at` on, and its first word, number or mark: `bytes` from `word`. There are none at the end. */
struct reader {
  const char *at, *end, *word;
  size_t bytes;
  bool strange; /* a remark or a string that does not end */
};

static bool is_blank(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

static bool begins_name(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '$' || byte == '%';
}

static bool continues_name(char byte) { return byte != '%' && (begins_name(byte) || is_digit(byte)); }

/* Past the next `mark`, or to the end. */
static bool past(struct reader *reader, const char *mark) {
  size_t left = (size_t)(reader->end - reader->at);
  const char *found = memmem(reader->at, left, mark, strlen(mark));
  reader->at = found ? found + strlen(mark) : reader->end;
  return found;
}

static void skip_blanks_and_remarks(struct reader *reader) {
  for (;;) {
    while (reader->at < reader->end && is_blank(*reader->at)) reader->at++;
    if (reader->end - reader->at < 2 || reader->at[0] != '/') return;
    if (reader->at[1] == '/') {
      past(reader, "\n");
    } else if (reader->at[1] == '*') {
      reader->at += 2;
      if (!past(reader, "*/")) reader->strange = true;
    } else {
      return;
    }
  }
}

/* A string is a word. What a quote after a backslash means is not said anywhere, so there is no guess. */
static void skip_string(struct reader *reader) {
  for (reader->at++; reader->at < reader->end && *reader->at != '"'; reader->at++)
    if (*reader->at == '\n' || (*reader->at == '\\' && reader->end - reader->at > 1 && reader->at[1] == '"'))
      reader->strange = true;
  if (reader->at < reader->end) reader->at++;
  else reader->strange = true;
}

static void advance(struct reader *reader) {
  skip_blanks_and_remarks(reader);
  reader->word = reader->at;
  if (reader->at < reader->end) {
    if (*reader->at == '"') {
      skip_string(reader);
    } else {
      bool named = *reader->at == '.' || begins_name(*reader->at) || is_digit(*reader->at);
      reader->at++;
      while (named && reader->at < reader->end && continues_name(*reader->at)) reader->at++;
    }
  }
  if (reader->strange) reader->at = reader->word = reader->end;
  reader->bytes = (size_t)(reader->at - reader->word);
}

static bool is(const struct reader *reader, const char *word) {
  return reader->bytes == strlen(word) && !memcmp(reader->word, word, reader->bytes);
}

static bool take(struct reader *reader, const char *word) {
  if (!is(reader, word)) return false;
  advance(reader);
  return true;
}

static bool is_name(const struct reader *reader) { return reader->bytes && begins_name(*reader->word); }

static bool take_name(struct reader *reader) {
  if (!is_name(reader)) return false;
  advance(reader);
  return true;
}

/* A decimal number from 1 to LARGEST_BLOCK: all others are left out. */
static bool take_number(struct reader *reader, size_t *number) {
  *number = 0;
  for (size_t digit = 0; digit < reader->bytes; digit++) {
    if (!is_digit(reader->word[digit]) || reader->word[0] == '0') return false;
    *number = *number * 10 + (size_t)(reader->word[digit] - '0');
    if (*number > LARGEST_BLOCK) return false;
  }
  if (!*number) return false;
  advance(reader);
  return true;
}

static bool take_alignment(struct reader *reader, size_t *align) {
  return take_number(reader, align) && !(*align & (*align - 1));
}

static unsigned take_type(struct reader *reader) {
  for (size_t which = 0; which < sizeof types / sizeof *types; which++)
    if (take(reader, types[which].name)) return types[which].bytes;
  return 0;
}

/* .ptr, with the state space and the alignment of what the pointer points to. */
static bool take_pointee(struct reader *reader, unsigned element) {
  static const char *const spaces[] = {".global", ".const", ".shared", ".local"};
  size_t align;
  if (!take(reader, ".ptr")) return true;
  if (element < 4) return false;
  for (size_t which = 0; which < sizeof spaces / sizeof *spaces; which++)
    if (take(reader, spaces[which])) break;
  return !take(reader, ".align") || take_alignment(reader, &align);
}

/* One parameter, at the first place from `end` on that has its alignment. */
static bool take_parameter(struct reader *reader, size_t end, struct parameter *found) {
  size_t align = 0;
  if (!take(reader, ".param") || (take(reader, ".align") && !take_alignment(reader, &align))) return false;
  unsigned element = take_type(reader);
  if (!element || !take_pointee(reader, element) || !take_name(reader)) return false;
  if (!align) align = element;
  if (align < element) return false;
  found->size = element;
  while (take(reader, "[")) {
    size_t count;
    if (!take_number(reader, &count) || !take(reader, "]")) return false;
    found->size *= count;
    if (found->size > LARGEST_BLOCK) return false;
  }
  found->offset = (end + align - 1) / align * align;
  return found->offset + found->size <= LARGEST_BLOCK;
}

/* The list in parentheses, up to what may follow it. A kernel without one has no parameters or, in PTX before 1.4, has
   them in its body. */
static bool take_list(struct reader *reader, struct parameter *found, size_t most, size_t *count) {
  struct parameter one = {0, 0};
  if (!take(reader, "(")) return false;
  if (!take(reader, ")")) {
    do {
      if (!take_parameter(reader, one.offset + one.size, &one)) return false;
      if (*count < most) found[*count] = one;
      ++*count;
    } while (take(reader, ","));
    if (!take(reader, ")")) return false;
  }
  return is(reader, "{") || is(reader, ";") || (reader->bytes > 1 && *reader->word == '.');
}

size_t ptx_parameters(const char *text, size_t length, const char *entry, struct parameter *found, size_t most,
                      enum ptx_answer *answer) {
  struct reader reader = {.at = text, .end = text + strnlen(text, length)};
  size_t depth = 0;
  *answer = PTX_UNKNOWN;
  for (advance(&reader); reader.bytes; advance(&reader)) {
    if (is(&reader, "#")) return 0; /* of a preprocessor */
    if (is(&reader, "{")) depth++;
    if (is(&reader, "}") && !depth--) return 0;
    if (depth || !is(&reader, ".entry")) continue;
    advance(&reader);
    if (!is_name(&reader)) return 0;
    if (!is(&reader, entry)) continue;
    advance(&reader);
    size_t count = 0;
    if (!take_list(&reader, found, most, &count)) return 0;
    *answer = PTX_FOUND; /* also of a mere declaration: a definition has to agree with it */
    return count;
  }
  if (!depth && !reader.strange) *answer = PTX_NO_ENTRY;
  return 0;
}
