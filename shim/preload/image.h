/* Images of device code in the program's memory: what they are, and how far they reach. */
#ifndef TESSERA_IMAGE_H
#define TESSERA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct image {
  enum wire_image kind;
  const char *data; /* for what only points to a container that container */
  size_t bytes;     /* 0: how far it reaches cannot be told */
};

/* An image that the driver has taken. `limit`: of how many bytes it is known that they are there, 0 if only the image
 * says so: then nothing is read behind what its headers announce, or the zero byte that ends a text. */
struct image image_of(const void *data, size_t limit);

/* The next PTX text in a fatbin that is not packed, behind `*at`, at first 0; NULL when there are no more. */
const char *image_next_text(const struct image *image, size_t *at, size_t *bytes);

#endif
