/* Bytes of host memory that a copy moves, row by row. */
#ifndef TESSERA_ROWS_H
#define TESSERA_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "place.h"
#include "wire.h"

struct rows {
  uint64_t start;
  size_t width, height, depth; /* bytes, rows, slices */
  size_t pitch, slice;         /* bytes from row to row, from slice to slice */
  size_t bytes;                /* of all rows */
  size_t span;                 /* from the first byte to the last */
  bool doubtful;               /* only the program says that there is memory */
};

/* One side of a copy, whose memory is the host's. False: it is none, the copy moves nothing, or no memory can be so. */
bool rows_of(const struct wire_copy_body *body, const struct wire_side *side, const struct memory *memory,
             struct rows *rows);

/* Whether the bytes can be read now, also if the program was wrong about them. */
bool rows_readable(const struct rows *rows);

void rows_read(const struct rows *rows, void *to);

/* The hash of the bytes in order, which are sent to the reader too if `send`. False, without memory for that. */
bool rows_content(const struct rows *rows, bool send, uint8_t digest[WIRE_CONTENT_BYTES]);

#endif
