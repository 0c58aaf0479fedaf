/* What the files of the software driver share. Each object has a file of its own, which owns its state. */
#ifndef SOFTGPU_DRIVER_H
#define SOFTGPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "cards.h"

/* Marks a function of the API: what programs call goes on to it. */
#define EXPORTED
/* The same function under one more symbol. */
#define ALIAS(name) __attribute__((alias(ALIAS_TEXT(name))))
#define ALIAS_TEXT(name) #name
enum { MOST_DEVICES = 64, LONGEST_NAME = 63 };

struct device {
  const struct card *card;
  size_t memory;
  CUuuid uuid;
  char name[LONGEST_NAME + 1]; /* what the fleet calls it */
};

/* What is between two devices, in both directions. */
struct connection {
  double bandwidth; /* bytes a second */
  double latency;   /* seconds; 0: nobody says */
  bool peer;        /* one may access the other's memory */
};

/* machine.c: the devices, set once by cuInit and constant from then on. */
bool machine_begin(void);
bool flag_variable(const char *name, bool *on); /* of the environment: 0, 1 or not there; else false, and a line */
const struct device *device_at(CUdevice ordinal); /* NULL for a number that no device has */
int device_count(void);
const struct connection *device_connection(CUdevice first, CUdevice second); /* of two that there are, not the same */
uint32_t device_rounding(CUdevice ordinal); /* of approximate functions and tensor cores: how the engine is to do it */

/* init.c */
CUresult ready(void); /* CUDA_SUCCESS once cuInit has succeeded in this process */
int driver_version(void);
const char *result_name(CUresult result); /* NULL for a number that is none */
/* The calling thread begins or ends a function of the program, which may not call the driver; what it was before. */
bool set_inside(bool now);

/* context.c: the calling thread's context, alive. What its work has come to is an error here too. */
struct queue;
struct here {
  CUcontext context;
  CUdevice device;
  unsigned long long id;
  struct queue *legacy; /* of its default stream */
};
CUresult current(struct here *here);
CUresult context_here(CUcontext context, struct here *here); /* the same for any context; the current one for NULL */

/* Work of a context has failed: none is done any more, and all calls that need the context say so. */
void context_fail(CUcontext context, unsigned long long id, CUresult result);
unsigned long long context_id(CUcontext context);
CUresult context_result(CUcontext context, unsigned long long id); /* success for one that is no more */
CUresult context_check(CUcontext context, unsigned long long id);  /* CUDA_ERROR_CONTEXT_IS_DESTROYED for that */

unsigned context_count(void); /* living ones */

/* context.c: the contexts whose memory one has been given access to. */
enum { MOST_PEERS = 64 };
/* false: it is no more */
bool context_peers(CUcontext context, unsigned long long id, CUcontext peers[MOST_PEERS], size_t *count);

/* peer.c */
bool devices_are_peers(CUdevice first, CUdevice second);

/* log.c: a line on standard error. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);
uint64_t nanoseconds_now(void); /* of a clock that only goes forward, the same in all processes */
double milliseconds_now(void);

/* Leave a function with what another one returned, unless that succeeded. */
#define CHECK(call)                             \
  do {                                          \
    CUresult result_ = (call);                  \
    if (result_ != CUDA_SUCCESS) return result_; \
  } while (0)

#endif
