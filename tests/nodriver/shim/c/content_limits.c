/* Every number of lanes and every way of adding gives one hash, of bytes that end where the allocation does: the
   sanitizers see what is read beyond. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"

static const size_t sizes[] = {0, 1, 127, 128, 129, 65535, 65536, 65537, 131071, 131072, 131201, 524288, 1048577};

static void hash(const uint8_t *data, size_t bytes, size_t step, unsigned lanes, uint8_t *digest) {
  struct content content;
  content_begin(&content, bytes);
  content.lanes = lanes;
  for (size_t at = 0; at < bytes; at += step) content_add(&content, data + at, bytes - at < step ? bytes - at : step);
  if (!content_end(&content, digest)) abort();
}

int main(void) {
  for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
    size_t bytes = sizes[which];
    uint8_t *room = malloc(bytes + 1), *data = room + 1; /* also aligned to nothing */
    if (!room) return 2;
    for (size_t at = 0; at < bytes; at++) data[at] = (uint8_t)(at * 7 + (at >> 8));
    uint8_t expected[CONTENT_DIGEST], found[CONTENT_DIGEST];
    content_of(data, bytes, expected);
    for (unsigned lanes = 1; lanes <= blake2b_lanes(); lanes *= 2)
      for (size_t step = 1000; step < 4000000; step *= 61) {
        hash(data, bytes, step, lanes, found);
        if (memcmp(found, expected, sizeof found)) {
          fprintf(stderr, "%zu bytes, %zu at a time, %u lanes\n", bytes, step, lanes);
          return 1;
        }
      }
    free(room);
  }
  return 0;
}
