/* Memory that somebody waits for to change, whoever changes it: another process, or a thread with a plain store. */
#ifndef SOFTGPU_WATCH_H
#define SOFTGPU_WATCH_H

#include <stdbool.h>

/* The first thing of whatever waits. */
struct watch {
  struct watch *next;
  /* Whether what is waited for has come. It is not called again then, and may free the watch. */
  bool (*look)(struct watch *watch);
};

/* Look at it from time to time. False: no thread for that. */
bool watch_add(struct watch *watch);

/* Look at all now, as something may have changed. */
void watch_now(void);

#endif
