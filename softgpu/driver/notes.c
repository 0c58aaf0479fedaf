/* The last lines that a person was told, and functions of the program that are told them too (cuLogs...).
 *
 * These functions are called where a line is written, with whatever locks are held there, so that they may not call the
 * driver. A line has a number, the first is 0; an iterator is the number of the next one. */
#include "notes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { LINES = 50, LINE = 512 }; /* 25600 bytes, as documented */

static const char LOST[] = "softgpu: older lines are lost\n";
static const char LEFT_OUT[] = "softgpu: older lines are left out, for which there is no room\n";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what follows */
static char lines[LINES][LINE];
static unsigned written;

struct listener {
  struct listener *next;
  CUlogsCallback function;
  void *given;
};

static pthread_rwlock_t listening = PTHREAD_RWLOCK_INITIALIZER; /* held for reading while they are called */
static struct listener *listeners;

static _Thread_local bool telling; /* what a listener causes is not told to it */

void note(const char *line) {
  char told[LINE];
  pthread_mutex_lock(&lock);
  snprintf(lines[written++ % LINES], LINE, "%s", line);
  pthread_mutex_unlock(&lock);
  if (telling) return;
  telling = true;
  bool before = set_inside(true);
  pthread_rwlock_rdlock(&listening);
  for (struct listener *listener = listeners; listener; listener = listener->next) {
    snprintf(told, sizeof told, "%s", line); /* theirs, to change */
    listener->function(listener->given, CU_LOG_LEVEL_ERROR, told, strlen(told));
  }
  pthread_rwlock_unlock(&listening);
  set_inside(before);
  telling = false;
}

EXPORTED CUresult cuLogsRegisterCallback(CUlogsCallback function, void *given, CUlogsCallbackHandle *handle) {
  if (telling) return CUDA_ERROR_NOT_PERMITTED;
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  struct listener *made = malloc(sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_rwlock_wrlock(&listening);
  *made = (struct listener){listeners, function, given};
  listeners = made;
  pthread_rwlock_unlock(&listening);
  if (handle) *handle = (CUlogsCallbackHandle)made;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  if (telling) return CUDA_ERROR_NOT_PERMITTED;
  pthread_rwlock_wrlock(&listening);
  struct listener **at = &listeners, *found;
  while (*at && (CUlogsCallbackHandle)*at != handle) at = &(*at)->next;
  found = *at;
  if (found) *at = found->next;
  pthread_rwlock_unlock(&listening);
  free(found);
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuLogsCurrent(CUlogIterator *iterator, unsigned int flags) {
  if (!iterator || flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  *iterator = written;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

static unsigned oldest(void) { return written > LINES ? written - LINES : 0; }

/* Write lines from number `from` on; the room that this takes. With `buffer` NULL nothing is written. */
static size_t put(unsigned from, const char *before, char *buffer) {
  size_t length = strlen(before);
  if (buffer) memcpy(buffer, before, length);
  for (; from != written; from++) {
    const char *line = lines[from % LINES];
    if (buffer) sprintf(buffer + length, "%s\n", line);
    length += strlen(line) + 1;
  }
  return length;
}

/* As many of the last lines as there is room for, and above them that there are more. The lock is held. */
static CUresult dump(unsigned from, char *buffer, size_t *size) {
  const char *before = from < oldest() ? LOST : "";
  if (from < oldest()) from = oldest();
  if (put(from, before, NULL) >= *size) {
    before = LEFT_OUT;
    while (from != written && put(from, before, NULL) >= *size) from++;
    if (from == written) {
      *size = 0;
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  *size = put(from, before, buffer);
  buffer[*size] = 0;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags) {
  if (!buffer || !size || flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  unsigned from = iterator ? *iterator : oldest();
  CUresult result = from > written || !*size ? CUDA_ERROR_INVALID_VALUE : dump(from, buffer, size);
  if (iterator && result == CUDA_SUCCESS) *iterator = written;
  pthread_mutex_unlock(&lock);
  return result;
}

EXPORTED CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *path, unsigned int flags) {
  static const size_t MOST = LINES * LINE + sizeof LOST;
  size_t size = MOST;
  if (!path || flags) return CUDA_ERROR_INVALID_VALUE;
  char *text = malloc(MOST);
  if (!text) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = cuLogsDumpToMemory(iterator, text, &size, 0);
  FILE *file = result == CUDA_SUCCESS ? fopen(path, "we") : NULL;
  bool done = file && fwrite(text, 1, size, file) == size;
  if (file && fclose(file)) done = false;
  free(text);
  return result != CUDA_SUCCESS ? result : done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
