/* Fatbins: containers of device code for several targets, as nvcc's fatbinary writes them. */
#ifndef SOFTGPU_FATBIN_H
#define SOFTGPU_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx_header.h"

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_CUBIN = 2 }; /* there are others */

struct fatbin_entry {
  unsigned kind;
  struct target target;
  const uint8_t *data; /* data_bytes of them; packed in a way if `packing` is not 0 (enum sg_packing) */
  size_t data_bytes, unpacked_bytes;
  int packing;
};

/* A walk along the entries of a container. */
struct fatbin {
  const uint8_t *at, *end;
};

/* What a program has for each container: magic, version, the container's address, and for version 2 (relocatable code)
 * the address of a list of containers that are to be linked. */
struct fatbin_wrapper {
  uint32_t magic, version;
  const void *container, *more;
};

bool is_fatbin(const void *image);
bool is_fatbin_wrapper(const void *image);

/* Begin with the container at `image`; false: it is damaged, or longer than `limit` (0: unknown). */
bool fatbin_begin(struct fatbin *walk, const void *image, size_t limit);
/* 1: the next entry; 0: no more; -1: the rest is damaged. */
int fatbin_next(struct fatbin *walk, struct fatbin_entry *entry);

/* What an entry has, unpacked, to be freed, and a zero byte behind it that `bytes` leaves out. */
CUresult fatbin_content(const struct fatbin_entry *entry, char **content, size_t *bytes);

#endif
