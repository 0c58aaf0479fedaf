/* Copies and fills as records and nodes of graphs describe them. */
#ifndef TESSERA_COPY_H
#define TESSERA_COPY_H

#include <stdbool.h>

#include "place.h"
#include "real.h"
#include "wire.h"

/* The description of a copy, without contents; each side's kind is what its memory really is, whatever the parameters
 * call it. WIRE_PINNED if a side is host memory: read and written when the copy is done, as nodes of graphs do. False:
 * the parameters say something that nobody knows, and `body` is all zeros. The driver is asked, so that no lock of the
 * library may be held. */
bool copy_from_3d(const CUDA_MEMCPY3D *params, struct wire_copy_body *body);
bool copy_from_peer(const CUDA_MEMCPY3D_PEER *params, struct wire_copy_body *body);

/* The same, and what the two sides are. Without contexts (NULL) it is a copy like any other. */
struct sides {
  struct memory to, from;
};
bool copy_describe(const CUDA_MEMCPY3D_PEER *params, struct wire_copy_body *body, struct sides *sides);

void set_from_params(const CUDA_MEMSET_NODE_PARAMS_v2 *params, struct wire_set_body *body);

#endif
