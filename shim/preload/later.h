/* Contents of host memory that are looked at when the stream gets there. */
#ifndef TESSERA_LATER_H
#define TESSERA_LATER_H

#include "rows.h"
#include "streams.h"

/* Tell in an outcome of the record `of` what the rows hold, now; `send`: the bytes themselves as well. */
void tell_rows(uint64_t of, unsigned function, const struct rows *rows, bool send);

/* The same by a host function in a stream, or now if the stream takes none and `otherwise_now`. In a call of the driver
 * (`inside`), and without the ring's lock. */
void tell_rows_later(const struct stream *stream, uint64_t of, unsigned function, const struct rows *rows, bool send,
                     bool otherwise_now);

#endif
