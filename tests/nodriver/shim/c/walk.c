/* Checks mutations of the records on standard input, each in memory of its own of exactly their size, and prints how
 * many were records to the end and how many were not. The sanitizers see what is read outside. */
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t next_number(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

int main(int count, char **arguments) {
  static uint8_t sample[1 << 16];
  uint64_t n = fread(sample, 1, sizeof sample, stdin);
  long accepted = 0, refused = 0;
  for (long round = count > 1 ? atol(arguments[1]) : 0; round; --round) {
    uint64_t start = 0;
    if (next_number() % 2) { /* begin with another record than the first */
      uint32_t size;
      for (uint64_t skip = next_number() % 5; skip; --skip) {
        memcpy(&size, sample + start, sizeof size);
        start += size;
      }
    }
    uint64_t length = next_number() % 4 ? n - start : next_number() % (n - start + 1);
    uint8_t *bytes = malloc(length ? length : 1);
    memcpy(bytes, sample + start, length);
    for (uint64_t k = next_number() % 5; length && k; --k) {
      static const uint8_t liked[] = {0, 1, 7, 8, 0x7f, 0x80, 0xff};
      uint64_t value = next_number();
      bytes[next_number() % length] = value % 2 ? liked[value / 2 % sizeof liked] : (uint8_t)(value >> 8);
    }
    uint64_t done = ring_span(bytes, length, UINT64_MAX);
    if (done > length || (done < length && !record_wrong(bytes + done, length - done))) {
      return 1;
    }
    *(done == length ? &accepted : &refused) += 1;
    free(bytes);
  }
  printf("%ld %ld\n", accepted, refused);
  return 0;
}
