/* One thread launches, one opens and closes libraries, and meanwhile the program forks: each child launches too. */
#include "hazard.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int stop;
static CUfunction function;

static void *launches(void *unused) {
  for (int i = 0; !stop; i++) {
    CHECK(launch(function, NULL));
    if (i % 64 == 0) usleep(20); /* so that there are not too many to look at */
  }
  return unused;
}

static void *opens(void *unused) {
  while (!stop) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    MUST(library && dlsym(library, "cos"));
    dlclose(library);
  }
  return unused;
}

int main(int count, char **words) {
  int children = count > 1 ? atoi(words[1]) : 30;
  pthread_t threads[2];
  function = ready();
  MUST(!pthread_create(&threads[0], NULL, launches, NULL) && !pthread_create(&threads[1], NULL, opens, NULL));
  for (int i = 0; i < children; i++) {
    pid_t child = fork();
    int status;
    if (child == 0) {
      alarm(5);
      for (int n = 0; n < 3; n++)
        if (launch(function, NULL) != CUDA_SUCCESS) _exit(1);
      _exit(0);
    }
    MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  stop = 1;
  for (int i = 0; i < 2; i++) MUST(!pthread_join(threads[i], NULL));
  return 0;
}
