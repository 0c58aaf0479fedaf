/* Bytes of devices: files in memory, and which parts of them are taken. */
#ifndef SOFTGPU_ARENA_H
#define SOFTGPU_ARENA_H

#include "api.h"
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct block;
struct mapping;

/* All of a device's memory; it is always mapped. */
struct arena *arena_of(CUdevice device);
bool arenas_have(uint64_t address); /* taken or not */

/* A part of it with a file of its own, for up to `size` bytes, that other processes may map. NULL: no memory. Nothing
 * may be taken of it any more when it ends. Its addresses are those of the mapping. */
struct arena *arena_make(CUdevice device, uint64_t size, const char *what);
void arena_end(struct arena *arena);
struct mapping *arena_mapping(const struct arena *arena); /* NULL for that of a device */

/* A piece, all zero, at a multiple of `alignment`, a power of two. The block is what has to be given back. */
CUresult arena_take(struct arena *arena, uint64_t bytes, uint64_t alignment, struct block **block, uint64_t *address);
void arena_give(struct arena *arena, struct block *block);

/* Where the bytes of an address in it are. */
int arena_file(const struct arena *arena);
uint64_t arena_offset(const struct arena *arena, uint64_t address);

#endif
