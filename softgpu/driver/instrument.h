/* The instrument: what SOFTGPU_INSTRUMENT names says what is logged, what goes wrong on purpose, and how this driver
 * differs from its usual self. docs/instrument.md. */
#ifndef SOFTGPU_INSTRUMENT_H
#define SOFTGPU_INSTRUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

/* Functions that programs call. */

struct exported {
  const char *symbol, *name;     /* cuMemAlloc_v2, cuMemAlloc */
  const char *const *parameters; /* their names */
  unsigned count;
};

extern const struct exported instrumented[]; /* made from functions.tsv */
extern const unsigned instrumented_count;

enum value_kind { UNSIGNED, SIGNED, REAL, TEXT, ADDRESS, BYTES, INT_AT, UNSIGNED_AT, LONG_AT, FLOAT_AT, ADDRESS_AT };

/* An argument. The kinds with `AT` are pointers to where an answer goes. */
struct value {
  enum value_kind kind;
  unsigned size; /* of BYTES */
  union {
    uint64_t number;
    double real;
    const void *address;
  };
};

/* A call that is looked at. */
struct looked_at {
  const struct exported *function;
  CUresult result; /* if it is not made */
  bool made;
  uint64_t start;
};

/* Whether anything is instrumented: set before the program starts. */
extern __attribute__((visibility("hidden"))) bool instrument_on;

/* False: the call is not made, and gives `call->result`. */
bool instrument_before(struct looked_at *call, const struct exported *function);
CUresult instrument_after(const struct looked_at *call, const struct value *values, CUresult result);

/* Launches. */

struct launched {
  const char *kernel;
  CUdevice device;
  const uint32_t *grid, *block; /* three numbers each */
  uint32_t shared;              /* dynamic, in bytes */
};

struct sg_result;
/* Whether kernels have to be compiled with SG_LOGS, and `instrument_launch` wants what came of it. */
bool instrument_wants_accesses(void);
void instrument_launch(const struct launched *launch, const struct sg_result *result);

/* What the modelled clock says when the process ends: how long operations took and how late they were, in
 * nanoseconds. */
struct clock_report {
  bool kept_up;
  uint64_t operations, took, late;
};
void instrument_clock(const struct clock_report *report);

/* How the driver differs. */

bool instrument_read(void);   /* false, after a line that says why: the file is not as it should be */
int instrument_version(void); /* of the driver; 0: nothing is said about it */
bool instrument_reuses(void); /* handles and addresses of what is no more are those of the next that is made */
void instrument_load(void);   /* in cuInit: call the loader, if that is wanted */

#endif
