/* What lies at an address that a copy or a fill names. */
#ifndef TESSERA_PLACE_H
#define TESSERA_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum memory_kind {
  MEMORY_UNKNOWN = 0, /* the driver cannot say */
  MEMORY_PAGEABLE,    /* the host's own: the driver does not know it, or not all of it */
  MEMORY_PINNED,      /* the host's: allocated by the driver, or registered with it */
  MEMORY_MANAGED,
  MEMORY_DEVICE,
  MEMORY_ARRAY
};

struct memory {
  enum memory_kind kind;
  uint64_t host; /* where the host reads what a device reads at the address: of MEMORY_PINNED, 0 if it cannot */
};

/* Bytes from an address on; memory of a device is such by its first byte. */
struct memory memory_at(uint64_t address, uint64_t bytes);

#endif
