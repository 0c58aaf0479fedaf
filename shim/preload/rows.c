#include "rows.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "content.h"
#include "contents.h"
#include "store.h"

enum { PAGE = 4096, NO_WAY = -1 };

static const char *row_at(const struct rows *rows, size_t z, size_t y) {
  return (const char *)(uintptr_t)(rows->start + z * rows->slice + y * rows->pitch);
}

/* Rows that follow each other without gaps are one. */
static void join(struct rows *rows) {
  if (rows->height != 1 && rows->pitch != rows->width) return;
  rows->width *= rows->height;
  rows->height = 1;
  if (rows->depth != 1 && rows->slice != rows->width) return;
  rows->width *= rows->depth;
  rows->depth = 1;
}

bool rows_of(const struct wire_copy_body *body, const struct wire_side *side, const struct memory *memory,
             struct rows *rows) {
  uint64_t base = memory->kind == MEMORY_PINNED ? memory->host : side->address;
  if (side->kind != WIRE_SIDE_HOST || !base || !body->width || !body->height || !body->depth) return false;
  *rows = (struct rows){.width = body->width, .height = body->height, .depth = body->depth, .pitch = side->pitch,
                        .doubtful = memory->kind != MEMORY_PINNED};
  size_t line, slices, last;
  if (__builtin_mul_overflow(side->pitch, side->height, &rows->slice) ||
      __builtin_mul_overflow(rows->width, rows->height, &line) ||
      __builtin_mul_overflow(line, rows->depth, &rows->bytes) ||
      __builtin_mul_overflow(rows->depth - 1, rows->slice, &slices) ||
      __builtin_mul_overflow(rows->height - 1, rows->pitch, &last) ||
      __builtin_add_overflow(slices, last, &last) || __builtin_add_overflow(last, rows->width, &rows->span) ||
      __builtin_mul_overflow(side->z, rows->slice, &slices) || __builtin_mul_overflow(side->y, side->pitch, &line) ||
      __builtin_add_overflow(slices, line, &line) || __builtin_add_overflow(line, side->x, &line) ||
      __builtin_add_overflow(base, line, &rows->start) || __builtin_add_overflow(rows->start, rows->span, &last))
    return false;
  join(rows);
  return true;
}

/* The system reads eight bytes for a call that makes no sense, and says first if they cannot be read. */
static bool page_readable(uint64_t at) {
  long result = syscall(SYS_rt_sigprocmask, NO_WAY, at & ~(uint64_t)7, NULL, 8ul);
  return result == 0 || errno != EFAULT;
}

bool rows_readable(const struct rows *rows) {
  if (!rows->doubtful) return true;
  int before = errno;
  uint64_t at = rows->start, end = rows->start + rows->span;
  bool good = true;
  for (; good && at < end; at = (at / PAGE + 1) * PAGE) good = page_readable(at);
  errno = before;
  return good;
}

void rows_read(const struct rows *rows, void *to) {
  char *next = to;
  for (size_t z = 0; z < rows->depth; z++)
    for (size_t y = 0; y < rows->height; y++, next += rows->width) memcpy(next, row_at(rows, z, y), rows->width);
}

static void hash(const struct rows *rows, uint8_t digest[WIRE_CONTENT_BYTES]) {
  struct content content;
  content_begin(&content, rows->bytes);
  for (size_t z = 0; z < rows->depth; z++)
    for (size_t y = 0; y < rows->height; y++) content_add(&content, row_at(rows, z, y), rows->width);
  content_end(&content, digest);
}

bool rows_content(const struct rows *rows, bool send, uint8_t digest[WIRE_CONTENT_BYTES]) {
  if (!send) {
    hash(rows, digest);
    return true;
  }
  if (rows->width == rows->bytes) {
    contents_send(row_at(rows, 0, 0), rows->bytes, digest);
    return true;
  }
  void *dense = store_take(rows->bytes);
  if (!dense) return false;
  rows_read(rows, dense);
  contents_send(dense, rows->bytes, digest);
  store_give(dense, rows->bytes);
  return true;
}
