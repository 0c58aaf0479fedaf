/* Memory of objects that are handles. What is freed is a list through its first bytes. */
#include "freed.h"

#include <stdlib.h>
#include <string.h>

#include "instrument.h"

void *object_make(struct freed *freed, size_t size) {
  pthread_mutex_lock(&freed->lock);
  void *object = freed->last;
  if (object) memcpy(&freed->last, object, sizeof freed->last);
  pthread_mutex_unlock(&freed->lock);
  return object ? memset(object, 0, size) : calloc(1, size);
}

void object_free(struct freed *freed, void *object) {
  if (!object || !instrument_reuses()) {
    free(object);
    return;
  }
  pthread_mutex_lock(&freed->lock);
  memcpy(object, &freed->last, sizeof freed->last);
  freed->last = object;
  pthread_mutex_unlock(&freed->lock);
}
