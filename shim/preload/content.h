/* The name of bytes in records and traces: a hash that several lanes of a vector compute at the same time.

   It is BLAKE2b-256 (RFC 7693) with the person "tessera content", of the number of bytes (64 bits, little-endian) and
   then the BLAKE2b-256 digests of the consecutive pieces of CONTENT_PIECE bytes, the last one shorter; bytes that are
   none have no pieces. tessera/content.py is the same in Python. */
#ifndef TESSERA_CONTENT_H
#define TESSERA_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blake2b.h"

enum { CONTENT_PIECE = 65536, CONTENT_DIGEST = 32 };

struct content {
  struct blake2b whole, piece;
  uint64_t left; /* bytes that are still to be added */
  unsigned lanes;
  bool more; /* than was promised was added */
};

/* For bytes that do not lie together. `total`: how many there will be. */
void content_begin(struct content *content, uint64_t total);
void content_add(struct content *content, const void *data, size_t bytes);

/* False, without a digest, when not just the promised number of bytes was added. */
bool content_end(struct content *content, uint8_t digest[CONTENT_DIGEST]);

void content_of(const void *data, size_t bytes, uint8_t digest[CONTENT_DIGEST]);

#endif
