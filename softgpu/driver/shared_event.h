/* Events of several processes: which record of one was the last, and which are done. */
#ifndef SOFTGPU_SHARED_EVENT_H
#define SOFTGPU_SHARED_EVENT_H

#include "api.h"
#include <stdbool.h>
#include <stdint.h>

struct shared_event;

/* A new one with a reference, or that of a handle. */
CUresult shared_event_make(CUdevice device, struct shared_event **event);
CUresult shared_event_open(const CUipcEventHandle *handle, struct shared_event **event);
struct shared_event *shared_event_hold(struct shared_event *event);
void shared_event_release(struct shared_event *event); /* NULL: nothing */

/* For other processes; only of one that this process has made. */
CUresult shared_event_handle(const struct shared_event *event, CUipcEventHandle *handle);

/* This process records it, and has done so; a record is known by a number that no other one has. 0: there was none. */
uint64_t shared_event_begin(struct shared_event *event);
void shared_event_finish(struct shared_event *event, uint64_t record);

uint64_t shared_event_last(const struct shared_event *event);
bool shared_event_done(const struct shared_event *event, uint64_t record); /* or its process is no more */

/* An action for work: its operation is done when a record of another process is. `given`: from the second function;
 * NULL: no memory. */
void shared_event_wait(void *given);
void *shared_event_wait_begin(struct shared_event *event, uint64_t record);
void shared_event_wait_end(void *given); /* instead of the action */

#endif
