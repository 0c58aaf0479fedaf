/* The parameters of a kernel, read from its PTX: drivers before CUDA 12.4 do not tell them. */
#ifndef TESSERA_PTX_PARAMS_H
#define TESSERA_PTX_PARAMS_H

#include <stddef.h>

struct parameter {
  size_t offset, size; /* bytes, in the parameter block */
};

enum ptx_answer {
  PTX_FOUND,
  PTX_NO_ENTRY, /* no kernel of that name */
  PTX_UNKNOWN   /* something in the way, or in the parameters, that is not understood */
};

/* How many parameters the kernel `entry` has; `found` gets the first `most` of them. 0 unless the answer is PTX_FOUND.
   `text` ends after `length` bytes or at a zero byte before. */
size_t ptx_parameters(const char *text, size_t length, const char *entry, struct parameter *found, size_t most,
                      enum ptx_answer *answer);

#endif
