/* Timers interrupt everything every 100 microseconds while threads begin and launch, the first one, which has the
 * signals, a little later; a handler for bad addresses is there, and is the program's. */
#include "hazard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <setjmp.h>
#include <sys/time.h>

enum { THREADS = 4, LAUNCHES = 5000 };
static volatile sig_atomic_t alarms;
static sigjmp_buf back;

static void alarmed(int number) {
  (void)number;
  alarms++;
}
static void bad_address(int number) {
  (void)number;
  siglongjmp(back, 1);
}

static void *launches(void *function) {
  for (int i = 0; i < LAUNCHES; i++) {
    errno = 77;
    CHECK(launch(function, NULL));
    MUST(errno == 77);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  struct sigaction on_alarm = {.sa_handler = alarmed}, on_fault = {.sa_handler = bad_address}, now;
  struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  MUST(!sigaction(SIGALRM, &on_alarm, NULL) && !sigaction(SIGSEGV, &on_fault, NULL));
  MUST(!setitimer(ITIMER_REAL, &often, NULL));
  for (int i = 0; i < THREADS; i++) MUST(!pthread_create(&threads[i], NULL, launches, (void *)&back));
  while (alarms < 300) pause();
  launches((void *)&back);
  for (int i = 0; i < THREADS; i++) MUST(!pthread_join(threads[i], NULL));
  MUST(!setitimer(ITIMER_REAL, &never, NULL));
  MUST(!sigaction(SIGSEGV, NULL, &now) && now.sa_handler == bad_address);
  if (!sigsetjmp(back, 1)) *(volatile int *)8 = 0;
  printf("%d\n", alarms > 10);
  return 0;
}
