/* Launches and forks; in the child a new thread is the first to launch, and then the one that was there before. */
#include "hazard.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *launches(void *function) {
  printf("%ld\n", syscall(SYS_gettid));
  CHECK(launch(function, NULL));
  return NULL;
}

int main(void) {
  int status;
  pthread_t thread;
  CUfunction function = ready();
  pid_t child = fork();
  if (child == 0) {
    MUST(!pthread_create(&thread, NULL, launches, function) && !pthread_join(thread, NULL));
    launches(function);
    return 0;
  }
  MUST(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
