/* BLAKE2b (RFC 7693) without a key: one text at a time, or several of one length side by side. */
#ifndef TESSERA_BLAKE2B_H
#define TESSERA_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

enum { BLAKE2B_BLOCK = 128, BLAKE2B_WORDS = 8, BLAKE2B_PERSON = 16, BLAKE2B_MOST_LANES = 8 };

struct blake2b {
  uint64_t state[BLAKE2B_WORDS];
  uint64_t bytes; /* added so far */
  size_t digest;
  uint8_t block[BLAKE2B_BLOCK]; /* the last bytes added: the final block is compressed otherwise than the others */
};

/* `digest`: its length, 1 to 64 bytes. `person`: BLAKE2B_PERSON bytes, or NULL for zeros. */
void blake2b_begin(struct blake2b *hash, size_t digest, const uint8_t *person);
void blake2b_add(struct blake2b *hash, const void *data, size_t bytes);
void blake2b_end(struct blake2b *hash, uint8_t *digest);

/* How many lanes this processor has: 2, 4 or 8. */
unsigned blake2b_lanes(void);

/* The 32-byte digests, one after another, of consecutive texts of `each` bytes, a positive multiple of BLAKE2B_BLOCK.
   Does the first 8, 4, 2 or 1 of the `count` texts, at most `lanes`, and returns how many. */
unsigned blake2b_side_by_side(const uint8_t *texts, size_t each, size_t count, unsigned lanes, uint8_t *digests);

#endif
