/* The reading side of the ring, and the check of records: for the cffi extension, whose declarations this file is too
 * (as wire.h is), and for programs in C. */
#ifndef TESSERA_READER_H
#define TESSERA_READER_H

#include <stdint.h>

struct ring;

/* The ring behind a descriptor, with its records mapped twice in a row, so that no record wraps; NULL if it is none,
 * and `*wrong` says why. The descriptor may be closed afterwards. */
struct ring *ring_map(int descriptor, const char **wrong);
void ring_unmap(struct ring *ring);

/* How many records the program says were lost, and how many bytes were read. */
uint64_t ring_lost(const struct ring *ring);
uint64_t ring_position(const struct ring *ring);

/* Where the next record stands, and how many bytes of records there are; -1 if the program has ruined the ring. */
const uint8_t *ring_records(const struct ring *ring);
int64_t ring_available(const struct ring *ring);

/* The same, after waiting for records at most so long: briefly in a loop, then asleep for 50 µs to 2 ms at a time.
 * Returns at once, perhaps with 0, when `process` or `parent` (descriptors, or -1) has something to read. */
int64_t ring_wait(struct ring *ring, int process, int parent, uint32_t microseconds);

/* Gives the program room for so many bytes again. */
void ring_advance(struct ring *ring, uint64_t bytes);

/* What is wrong with the record at the beginning of `bytes`; NULL if it is whole and all in it lies within it. */
const char *record_wrong(const void *bytes, uint64_t n);

/* How many of `n` bytes are whole records without fault, at most `most`; 0 if the first one is none. */
uint64_t ring_span(const void *bytes, uint64_t n, uint64_t most);

/* Records that are there, counted; zeros before the first call. */
struct tally {
  uint64_t records, bytes;
  uint64_t missing;    /* numbers between those of the records */
  uint64_t epochs;
  uint64_t disordered; /* records whose number is not above that of the one before */
  uint64_t last;       /* the number of the last one */
  uint64_t kinds[128]; /* records by enum wire_kind */
};

/* Adds records to a tally: `bytes` as ring_span has found them. */
void record_tally(const void *bytes, uint64_t n, struct tally *tally);

/* The processor's time-stamp counter. */
uint64_t ticks(void);

#endif
