/* Threads of the driver. */
#include "thread.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

bool thread_begin(void *(*main)(void *given)) {
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  if (pthread_attr_init(&attributes)) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all); /* the program's signals are for its own threads */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool begun = !pthread_create(&thread, &attributes, main, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return begun;
}
