/* One source for every number of lanes: included by blake2b.c with LANES (1, 2, 4 or 8), TARGET (the instructions that
   the function may use), COMPRESS (its name) and WORDS(load): one word of each lane, by load(lane). */

#if LANES == 1
#define WORD uint64_t
#else
#define WORD uint64_t __attribute__((vector_size(8 * LANES)))
#endif
#define ROTATED(x, bits) ((x) >> (bits) | (x) << (64 - (bits)))
#define MIX(a, b, c, d, x, y)   \
  a += b + m[x];                \
  d = ROTATED(d ^ a, 32);       \
  c += d;                       \
  b = ROTATED(b ^ c, 24);       \
  a += b + m[y];                \
  d = ROTATED(d ^ a, 16);       \
  c += d;                       \
  b = ROTATED(b ^ c, 63)
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15) \
  MIX(v[0], v[4], v[8], v[12], s0, s1);                                             \
  MIX(v[1], v[5], v[9], v[13], s2, s3);                                             \
  MIX(v[2], v[6], v[10], v[14], s4, s5);                                            \
  MIX(v[3], v[7], v[11], v[15], s6, s7);                                            \
  MIX(v[0], v[5], v[10], v[15], s8, s9);                                            \
  MIX(v[1], v[6], v[11], v[12], s10, s11);                                          \
  MIX(v[2], v[7], v[8], v[13], s12, s13);                                           \
  MIX(v[3], v[4], v[9], v[14], s14, s15)

/* Compress `count` blocks of each lane; `state` has word 0 of all lanes, then word 1, and so on. Lane i begins at
   at + i * stride. `counter` is the number of bytes hashed with the first block; `last`: the last block is the end. */
TARGET static void COMPRESS(uint64_t *state, const uint8_t *at, size_t stride, size_t count, uint64_t counter,
                            bool last) {
  WORD h[8], v[16], m[16];
  memcpy(h, state, sizeof h);
  for (; count; count--, at += BLAKE2B_BLOCK, counter += BLAKE2B_BLOCK) {
    for (int word = 0; word < 16; word++) {
#define LOAD(lane) word_at(at + (lane) * stride + 8 * word)
      m[word] = (WORD)WORDS(LOAD);
#undef LOAD
    }
    for (int word = 0; word < 8; word++) {
      v[word] = h[word];
      v[8 + word] = (WORD){0} + initial[word];
    }
    v[12] ^= counter;
    if (last && count == 1) v[14] = ~v[14];
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
    for (int word = 0; word < 8; word++) h[word] ^= v[word] ^ v[8 + word];
  }
  memcpy(state, h, sizeof h);
}

#undef WORD
#undef ROTATED
#undef MIX
#undef ROUND
#undef LANES
#undef TARGET
#undef COMPRESS
#undef WORDS
