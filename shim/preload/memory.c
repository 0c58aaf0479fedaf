#include "memory.h"

#include <string.h>

enum { LONGEST_NAME = 65536 };

void memory_made(unsigned function, const struct wire_memory *what, const char *name) {
  size_t length = name ? strnlen(name, LONGEST_NAME) : 0;
  struct wire_memory *record = record_begin(WIRE_MEMORY, function, sizeof *record + padded(length));
  const struct wire_head head = record->head;
  *record = *what;
  record->head = head;
  record->head.flags = what->head.flags;
  record->name_bytes = (uint32_t)length;
  put_bytes(record + 1, name, length);
  record_end(record);
}

struct ending memory_end(unsigned function, uint64_t address, unsigned kind) {
  return ending_begin(function, (struct wire_end){.kind = WIRE_MEMORY, .handle = address, .memory = kind});
}

bool allocation_of(uint64_t address, uint64_t *start, uint64_t *bytes) {
  CUdeviceptr_v2 base = 0;
  size_t size = 0;
  if (!real.cuMemGetAddressRange_v2 || ASK(real.cuMemGetAddressRange_v2(&base, &size, address))) return false;
  if (base > address || size <= address - base) return false;
  *start = base;
  *bytes = size;
  return true;
}

void memory_exported(unsigned function, uint64_t address) {
  uint64_t bytes;
  struct wire_export record = {.address = address, .kind = WIRE_MEMORY};
  allocation_of(address, &record.address, &bytes);
  record_thing(WIRE_EXPORT, function, 0, &record, sizeof record);
}

int device_of(uint64_t address) {
  int device = -1;
  if (!real.cuPointerGetAttribute ||
      ASK(real.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)) != CUDA_SUCCESS)
    return -1;
  return device;
}
