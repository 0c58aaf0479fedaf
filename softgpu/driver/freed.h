/* Memory of objects that are handles. */
#ifndef SOFTGPU_FREED_H
#define SOFTGPU_FREED_H

#include <pthread.h>
#include <stddef.h>

/* Objects of one kind, all of one size, that are no more; static state of the file that makes them. Empty unless the
 * instrument wants handles to be reused: then a new object has the handle of the last one that was freed. */
struct freed {
  pthread_mutex_t lock;
  void *last;
};

#define FREED {PTHREAD_MUTEX_INITIALIZER, NULL}

void *object_make(struct freed *freed, size_t size); /* all zero; NULL: no memory */
void object_free(struct freed *freed, void *object); /* or NULL */

#endif
