/* Bytes that grow, up to what a record may have. */
#ifndef TESSERA_GROWING_H
#define TESSERA_GROWING_H

#include <stdbool.h>
#include <stddef.h>

struct growing {
  char *bytes;
  size_t used, room;
  bool failed; /* there were too many, or there is no memory */
};

/* Room for more bytes, behind those that are there and with unknown contents: valid until the next call. NULL, from
 * then on always, when it fails. */
void *growing_add(struct growing *growing, size_t bytes);
void growing_end(struct growing *growing); /* empty again */

#endif
