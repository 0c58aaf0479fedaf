/* What tests call of the hashes, with the number of lanes forced and with bytes added part by part. */
#include <string.h>

#include "content.h"

#define ENTRY __attribute__((visibility("default")))

ENTRY unsigned lanes_here(void);
ENTRY void plain(const uint8_t *data, size_t bytes, size_t first, size_t digest_bytes, uint8_t *digest);
ENTRY void at_once(const uint8_t *data, size_t bytes, uint8_t *digest);
ENTRY int in_parts(const uint8_t *data, const size_t *parts, size_t count, uint64_t total, unsigned lanes,
                   uint8_t *digest);

unsigned lanes_here(void) { return blake2b_lanes(); }

/* BLAKE2b itself, of `first` bytes and then the others. */
void plain(const uint8_t *data, size_t bytes, size_t first, size_t digest_bytes, uint8_t *digest) {
  struct blake2b hash;
  blake2b_begin(&hash, digest_bytes, NULL);
  blake2b_add(&hash, data, first);
  blake2b_add(&hash, data + first, bytes - first);
  blake2b_end(&hash, digest);
}

void at_once(const uint8_t *data, size_t bytes, uint8_t *digest) { content_of(data, bytes, digest); }

/* At most `lanes`, which the processor has to have. */
int in_parts(const uint8_t *data, const size_t *parts, size_t count, uint64_t total, unsigned lanes, uint8_t *digest) {
  struct content content;
  content_begin(&content, total);
  content.lanes = lanes;
  for (size_t part = 0; part < count; data += parts[part++]) content_add(&content, data, parts[part]);
  return content_end(&content, digest);
}
