/* How far images reach: each stands at the end of a page, with nothing readable behind it.
 *
 *     image_extents LIMIT     reads images from standard input: 8 bytes with a length, then the bytes
 *
 * LIMIT 0: only the image says how far it reaches; 1: it is known. A line for each: kind, bytes, texts in it. An image
 * of 8 bytes "wrapper1" or "wrapper2" stands for a wrapper of the one before it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "image.h"

enum { PAGE = 4096 };

static char *at_end(const char *bytes, size_t count) {
  size_t whole = (count + PAGE - 1) / PAGE * PAGE + PAGE;
  char *place = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED || mprotect(place + whole - PAGE, PAGE, PROT_NONE)) exit(1);
  return memcpy(place + whole - PAGE - count, bytes, count);
}

static void show(const char *image, size_t limit) {
  struct image found = image_of(image, limit);
  size_t at = 0, bytes = 0, texts = 0, all = 0;
  if (found.bytes)
    for (const char *text; (text = image_next_text(&found, &at, &bytes)); texts++) all += strnlen(text, bytes);
  printf("%d %zu %zu %zu\n", found.kind, found.bytes, texts, all);
}

int main(int count, char **words) {
  uint64_t length;
  char *last = NULL;
  while (count == 2 && fread(&length, sizeof length, 1, stdin) == 1) {
    char *bytes = malloc(length ? length : 1);
    if (!bytes || fread(bytes, 1, length, stdin) != length) return 1;
    if (length == 8 && !memcmp(bytes, "wrapper", 7)) {
      struct { uint32_t magic, version; const char *container; } outer = {0x466243b1, (uint32_t)(bytes[7] - '0'), last};
      show(at_end((const char *)&outer, sizeof outer), 0);
    } else {
      last = at_end(bytes, length);
      show(last, *words[1] == '1' ? length : 0);
    }
    free(bytes);
  }
  return 0;
}
