/* The ring in shared memory that the records go to. */
#ifndef TESSERA_RING_H
#define TESSERA_RING_H

#include <stddef.h>
#include <stdint.h>

#include "lock.h"
#include "wire.h"

struct ring {
  struct lock lock;
  struct wire_ring *shared;
  char *records;      /* mapped twice in a row, so that no record is cut in two */
  uint64_t head;      /* as in `shared` */
  uint64_t tail;      /* as it was when somebody looked */
  uint64_t backed;    /* up to where pages have been asked for: the first time around they are not there */
  uint64_t sequence;  /* of the last record */
  uint64_t lost;      /* since the last epoch began */
  uint32_t process;   /* whose it is */
  uint32_t epoch;
  uint32_t larger;    /* whether the record that is being written stands in `aside` */
  char *aside;        /* where a record is written that finds no room */
};

/* A new ring; its descriptor, -1 when the system gives none. */
int ring_make(struct ring *ring);

/* Begin a record of `bytes` bytes with all that belongs to it, a multiple of 8, in which all but the head is to be
 * written: it holds what was there before. It holds the ring's lock until `record_end`, which gives its sequence
 * number, and in between there are no calls. Things are entered in the ledger. */
void *record_begin(enum wire_kind kind, unsigned function, size_t bytes);
uint64_t record_end(void *record);

/* Wait until there is room for so many bytes of contents and much is left for others. False: nobody reads. */
bool ring_room(size_t bytes);

static inline size_t padded(size_t bytes) { return (bytes + 7) & ~(size_t)7; }

/* Bytes that belong to a record, with zeros behind them up to a multiple of 8; what comes next. */
void *put_bytes(void *place, const void *bytes, size_t count);

#endif
