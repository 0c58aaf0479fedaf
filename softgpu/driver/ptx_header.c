/* The first directives of a PTX text: .version MAJOR.MINOR, then .target sm_NUMBER[a|f][, more]. */
#include "ptx_header.h"

#include <stdint.h>
#include <string.h>

#include "driver.h"

enum { NEWEST_MAJOR = 9, NEWEST_MINOR = 5 }; /* versions of PTX that the engine reads, as ptxparse/parser.py has it */

static int capability(CUdevice device) {
  const struct card *card = device_at(device)->card;
  return card->major * 10 + card->minor;
}

bool target_fits(struct target target, CUdevice device) {
  int own = capability(device);
  if (target.suffix == 'a') return target.number == own;
  if (target.suffix == 'f') return target.number / 10 == own / 10 && target.number <= own;
  return target.number <= own;
}

bool target_better(struct target first, struct target second) {
  if (first.number != second.number) return first.number > second.number;
  return first.suffix == 'a' ? second.suffix != 'a' : first.suffix == 'f' && !second.suffix;
}

/* A text that is looked at byte by byte, from `at` up to a zero byte or `limit` bytes. */
struct reader {
  const char *at;
  size_t left;
};

static char peek(const struct reader *reader) { return reader->left ? *reader->at : 0; }

static char next(struct reader *reader) {
  char byte = peek(reader);
  if (byte) {
    reader->at++;
    reader->left--;
  }
  return byte;
}

static bool is_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/* Go past spaces and remarks. */
static void skip(struct reader *reader) {
  for (;;) {
    while (is_space(peek(reader))) next(reader);
    if (peek(reader) != '/' || reader->left < 2) return;
    if (reader->at[1] == '/') {
      while (peek(reader) && peek(reader) != '\n') next(reader);
    } else if (reader->at[1] == '*') {
      next(reader);
      next(reader);
      char before = 0;
      for (char byte = next(reader); byte && !(before == '*' && byte == '/'); byte = next(reader)) before = byte;
    } else {
      return;
    }
  }
}

static bool take(struct reader *reader, const char *word) {
  for (; *word; word++)
    if (next(reader) != *word) return false;
  return true;
}

/* Up to three digits. */
static bool number(struct reader *reader, int *value) {
  int digits = 0;
  for (*value = 0; peek(reader) >= '0' && peek(reader) <= '9' && digits < 3; digits++)
    *value = *value * 10 + (next(reader) - '0');
  return digits > 0;
}

bool is_ptx(const char *text, size_t limit) {
  struct reader reader = {text, limit ? limit : SIZE_MAX};
  skip(&reader);
  return take(&reader, ".version") && is_space(peek(&reader));
}

CUresult ptx_check(const char *text, size_t bytes, CUdevice device) {
  struct reader reader = {text, bytes};
  int major, minor;
  struct target target;
  skip(&reader);
  if (!take(&reader, ".version")) return CUDA_ERROR_INVALID_PTX;
  skip(&reader);
  if (!number(&reader, &major) || !take(&reader, ".") || !number(&reader, &minor)) return CUDA_ERROR_INVALID_PTX;
  if (major > NEWEST_MAJOR || (major == NEWEST_MAJOR && minor > NEWEST_MINOR)) {
    complain("PTX of version %d.%d is newer than what this driver reads, %d.%d", major, minor, NEWEST_MAJOR,
             NEWEST_MINOR);
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  skip(&reader);
  if (!take(&reader, ".target")) return CUDA_ERROR_INVALID_PTX;
  skip(&reader);
  if (!take(&reader, "sm_") || !number(&reader, &target.number)) return CUDA_ERROR_INVALID_PTX;
  char suffix = peek(&reader);
  target.suffix = suffix == 'a' || suffix == 'f' ? suffix : 0;
  if (target_fits(target, device)) return CUDA_SUCCESS;
  complain("PTX for sm_%d%.1s does not run on device %d, of compute capability %d.%d", target.number, &target.suffix,
           device, capability(device) / 10, capability(device) % 10);
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
