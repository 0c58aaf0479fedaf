/* Elements of arrays. */
#ifndef TESSERA_ELEMENTS_H
#define TESSERA_ELEMENTS_H

#include "real.h"

/* Bytes of one; 0 for formats that have no elements of one size, and those that are not known here. */
unsigned element_bytes(CUarray_format format, unsigned channels);

#endif
