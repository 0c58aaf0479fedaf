#include "blake2b.h"

#include <cpuid.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static const uint64_t initial[BLAKE2B_WORDS] = {
  0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
  0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

static inline uint64_t word_at(const uint8_t *at) {
  uint64_t word; /* little-endian, as this machine is */
  memcpy(&word, at, sizeof word);
  return word;
}

#define LANES 1
#define TARGET
#define COMPRESS compress_1
#define WORDS(load) load(0)
#include "blake2b_lanes.h"

#define LANES 2
#define TARGET
#define COMPRESS compress_2
#define WORDS(load) {load(0), load(1)}
#include "blake2b_lanes.h"

#define LANES 4
#define TARGET __attribute__((target("avx2")))
#define COMPRESS compress_4
#define WORDS(load) {load(0), load(1), load(2), load(3)}
#include "blake2b_lanes.h"

#define LANES 8
#define TARGET __attribute__((target("avx512f,avx512vl")))
#define COMPRESS compress_8
#define WORDS(load) {load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)}
#include "blake2b_lanes.h"

/* The state before the first block, in all of some lanes. */
static void start(uint64_t *state, unsigned lanes, size_t digest, const uint8_t *person) {
  for (unsigned word = 0; word < BLAKE2B_WORDS; word++) {
    uint64_t value = initial[word];
    if (word == 0) value ^= 0x01010000 ^ digest; /* no key, no tree: fan-out and depth are 1 */
    if (person && word >= 6) value ^= word_at(person + 8 * (word - 6));
    for (unsigned lane = 0; lane < lanes; lane++) state[word * lanes + lane] = value;
  }
}

void blake2b_begin(struct blake2b *hash, size_t digest, const uint8_t *person) {
  start(hash->state, 1, digest, person);
  hash->bytes = 0;
  hash->digest = digest;
}

/* Bytes that lie in the block: as many as were added since the last one was compressed, all of it when it is full. */
static size_t held(const struct blake2b *hash) {
  size_t over = hash->bytes % BLAKE2B_BLOCK;
  return over || !hash->bytes ? over : BLAKE2B_BLOCK;
}

void blake2b_add(struct blake2b *hash, const void *data, size_t bytes) {
  const uint8_t *at = data;
  size_t inside = held(hash);
  if (bytes > BLAKE2B_BLOCK - inside) {
    if (inside) {
      size_t missing = BLAKE2B_BLOCK - inside;
      memcpy(hash->block + inside, at, missing);
      at += missing;
      bytes -= missing;
      hash->bytes += missing;
      compress_1(hash->state, hash->block, 0, 1, hash->bytes, false);
    }
    size_t whole = (bytes - 1) / BLAKE2B_BLOCK; /* something is left for the block */
    compress_1(hash->state, at, 0, whole, hash->bytes + BLAKE2B_BLOCK, false);
    at += whole * BLAKE2B_BLOCK;
    bytes -= whole * BLAKE2B_BLOCK;
    hash->bytes += whole * BLAKE2B_BLOCK;
    inside = 0;
  }
  if (bytes) memcpy(hash->block + inside, at, bytes);
  hash->bytes += bytes;
}

void blake2b_end(struct blake2b *hash, uint8_t *digest) {
  size_t inside = held(hash);
  memset(hash->block + inside, 0, BLAKE2B_BLOCK - inside);
  compress_1(hash->state, hash->block, 0, 1, hash->bytes, true);
  memcpy(digest, hash->state, hash->digest);
}

unsigned blake2b_side_by_side(const uint8_t *texts, size_t each, size_t count, unsigned lanes, uint8_t *digests) {
  uint64_t state[BLAKE2B_WORDS * BLAKE2B_MOST_LANES];
  unsigned used = BLAKE2B_MOST_LANES;
  while (used > 1 && (used > lanes || used > count)) used /= 2;
  start(state, used, 32, NULL);
  void (*compress)(uint64_t *, const uint8_t *, size_t, size_t, uint64_t, bool) =
    used == 8 ? compress_8 : used == 4 ? compress_4 : used == 2 ? compress_2 : compress_1;
  compress(state, texts, each, each / BLAKE2B_BLOCK, BLAKE2B_BLOCK, true);
  for (unsigned lane = 0; lane < used; lane++)
    for (unsigned word = 0; word < 4; word++)
      memcpy(digests + 32 * lane + 8 * word, &state[word * used + lane], 8);
  return used;
}

/* Which vector registers the system saves for programs, as bits of XCR0. */
static uint32_t saved_registers(void) {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static unsigned lanes_of_processor(void) {
  enum { WITH_AVX = 0x6, WITH_AVX512 = 0xe6 };
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE)) return 2;
  uint32_t saved = saved_registers();
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ebx & bit_AVX2)) return 2;
  if ((saved & WITH_AVX) != WITH_AVX) return 2;
  return ebx & bit_AVX512F && ebx & bit_AVX512VL && (saved & WITH_AVX512) == WITH_AVX512 ? 8 : 4;
}

unsigned blake2b_lanes(void) {
  static atomic_uint known; /* asking costs microseconds in a virtual machine; every thread finds the same */
  unsigned lanes = atomic_load_explicit(&known, memory_order_relaxed);
  if (!lanes) {
    lanes = lanes_of_processor();
    atomic_store_explicit(&known, lanes, memory_order_relaxed);
  }
  return lanes;
}
