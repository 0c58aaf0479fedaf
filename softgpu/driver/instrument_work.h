/* Work that has been done, each piece a line of the log. */
#ifndef SOFTGPU_INSTRUMENT_WORK_H
#define SOFTGPU_INSTRUMENT_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "api.h"

/* Where a piece of work is done. */
struct execution {
  CUstream stream; /* default streams are CU_STREAM_LEGACY and CU_STREAM_PER_THREAD */
  bool graph;      /* a launch of a graph brought it there */
};

bool instrument_wants_work(void);

/* A piece that has been done: what it is, and what came of it. `show` writes what else there is to say of `given`, each
 * member of the object with a comma before it. */
void instrument_work(const char *what, const struct execution *execution, CUresult result,
                     void (*show)(const void *given, FILE *to), const void *given);

/* Members, with a comma before them. */
void show_number(FILE *to, const char *name, uint64_t number);
void show_address(FILE *to, const char *name, uint64_t address);
void show_digest(FILE *to, const char *name, const void *bytes, size_t size); /* SHA-256 */

#endif
