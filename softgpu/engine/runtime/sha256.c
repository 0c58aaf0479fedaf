/* SHA-256 (FIPS 180-4, sections 5 and 6.2), with the instructions that most CPUs have for it where there are. */
#include "sha256.h"

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#define BLOCK 64

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t word, int count) { return word >> count | word << (32 - count); }

static void blocks_portable(uint32_t state[8], const uint8_t *data, size_t count) {
  for (; count; count--, data += BLOCK) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
      w[i] = (uint32_t)data[4 * i] << 24 | (uint32_t)data[4 * i + 1] << 16 | (uint32_t)data[4 * i + 2] << 8 |
             data[4 * i + 3];
    for (int i = 16; i < 64; i++)
      w[i] = w[i - 16] + (rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
             (rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
      uint32_t first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + (g ^ (e & (f ^ g))) + constants[i] + w[i];
      uint32_t second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) | (c & (a | b)));
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

/* The instructions keep the state as (a b e f) and (c d g h), the highest word first, and do two rounds at a time with
 * the words of the schedule in one of four registers in turn (Intel SDM, SHA256RNDS2, SHA256MSG1, SHA256MSG2). */
__attribute__((target("sha,sse4.1,ssse3"))) static void blocks_sha(uint32_t state[8], const uint8_t *data,
                                                                   size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
  __m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
  for (; count; count--, data += BLOCK) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 16; i++) {
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(data + 16 * i)), swap);
      } else {
        const __m128i last = w[(i + 3) & 3], middle = _mm_alignr_epi8(last, w[(i + 2) & 3], 4);
        const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]), middle);
        w[i & 3] = _mm_sha256msg2_epu32(sum, last);
      }
      __m128i sum = _mm_add_epi32(w[i & 3], _mm_loadu_si128((const __m128i *)(const void *)(constants + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  state[0] = (uint32_t)_mm_extract_epi32(abef, 3), state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
  state[4] = (uint32_t)_mm_extract_epi32(abef, 1), state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
  state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3), state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
  state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1), state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}

static int has_sha(void) {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1 && __get_cpuid(1, &a, &b, &c, &d) && c >> 19 & 1;
}

void sg_sha256(const void *data, size_t bytes, uint8_t digest[SG_SHA256_BYTES]) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  void (*blocks)(uint32_t *, const uint8_t *, size_t) = has_sha() ? blocks_sha : blocks_portable;
  const size_t rest = bytes % BLOCK;
  blocks(state, data, bytes / BLOCK);
  uint8_t last[2 * BLOCK] = {0};
  const size_t padded = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
  if (rest)
    memcpy(last, (const uint8_t *)data + bytes - rest, rest);
  last[rest] = 0x80;
  for (int i = 0; i < 8; i++)
    last[padded - 1 - i] = (uint8_t)((uint64_t)bytes * 8 >> 8 * i);
  blocks(state, last, padded / BLOCK);
  for (int i = 0; i < SG_SHA256_BYTES; i++)
    digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
