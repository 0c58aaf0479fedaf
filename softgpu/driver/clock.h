/* The modelled clock: when what streams do begins and ends as if the devices were the cards that they are called after.
 * docs/clock.md. Times are nanoseconds since the machine began, as its devices would count them; this machine has
 * SOFTGPU_CLOCK's dilation times as long. Without that variable nothing here does anything. */
#ifndef SOFTGPU_CLOCK_H
#define SOFTGPU_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "share.h"

/* When something ends, and how much later than that it did, in time of this machine: what comes after is not to
 * blame. */
struct moment {
  uint64_t time, late;
};

/* Move a moment to another one that it comes after. */
void clock_after(struct moment *moment, const struct moment *earlier);

/* Read SOFTGPU_CLOCK, before `share_begin`; false, after a line on standard error, when it makes no sense. */
bool clock_begin(void);
bool clock_on(void);
double clock_dilation(void); /* 0: off */

/* Threads of the program. A call takes its time; what it adds to a queue cannot begin before it has returned. */
void clock_call(CUgraphNodeType type);
void clock_call_graph(size_t nodes);
struct moment clock_issue(void);
/* The calling thread has waited for something that ended then. */
void clock_waited(const struct moment *end);

/* Operations: what the calling thread does between these two can begin at `begin`. When it ended; if it was `foreign`,
 * not before now. */
void clock_enter(const struct moment *begin);
struct moment clock_leave(bool foreign);
/* One that ends now, at no modelled time. */
void clock_end(struct moment *end, const struct moment *begin);

/* Steps of an operation. Each takes what all of its type take, and between `clock_step` and `clock_settle` may take
 * parts of devices for some time more; the thread waits until it has ended. */
void clock_step(CUgraphNodeType type);
void clock_take(const struct taken *parts, size_t count, double nanoseconds);
void clock_settle(void);

/* For events: the time of the operation that the thread does, or that of this machine when the clock is off. */
uint64_t clock_stamp(void);

#endif
