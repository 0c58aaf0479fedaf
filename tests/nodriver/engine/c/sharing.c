/* One pool for several threads; deadlines; forks; signals. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#ifdef __SANITIZE_THREAD__
enum { FORKS = 0 }; /* it does not support threads in the child of a process that had some */
#else
enum { FORKS = 1 };
#endif

static int32_t add_one(struct sg_env *env, uint64_t first, uint64_t last) {
  uint32_t *out = (uint32_t *)(uintptr_t)param(env, 0);
  for (uint64_t number = first; number < last; number++)
    for (int i = 0; i < 20; i++) __atomic_fetch_add(&out[number], 1, __ATOMIC_RELAXED);
  return SG_DONE;
}

static int32_t endless(struct sg_env *env, uint64_t first, uint64_t last) {
  (void)first, (void)last;
  while (!must_stop(env)) {}
  return SG_STOPPED;
}

static int32_t failing(struct sg_env *env, uint64_t first, uint64_t last) {
  for (uint64_t number = first; number < last; number++) {
    env->ctaid[0] = (uint32_t)number;
    if (number % 7 == 3) return env->helpers->trap(env, 1, 0, 0) ? SG_STOPPED : SG_DONE;
  }
  return SG_DONE;
}

static const struct sg_site sites[] = {{"trap", 9, 0, 0, 0, 0, 0}};
static const struct sg_kernel add_kernel = {HEAD("add_one", 0), .param_bytes = 8, .run = (void *)add_one};
static const struct sg_kernel endless_kernel = {HEAD("endless", 0), .run = (void *)endless};
static const struct sg_kernel failing_kernel = {HEAD("failing", 0), .sites = sites, .site_count = 1,
                                                .run = (void *)failing};

static void *launch_often(void *pool) {
  enum { BLOCKS = 500, TIMES = 20 };
  uint32_t out[BLOCKS] = {0};
  uint64_t params = (uint64_t)(uintptr_t)out;
  struct test test = open_test(pool, &add_kernel, BLOCKS, 64), broken = open_test(pool, &failing_kernel, 400, 32);
  test.launch.params = (const uint8_t *)&params;
  test.launch.params_size = 8;
  for (uint32_t i = 1; i <= TIMES; i++) {
    run(&test);
    for (uint32_t block = 0; block < BLOCKS; block++) CHECK(out[block] == 20 * i);
    run_to(&broken, SG_TRAP, "kernel failing, line 9: trap (block ");
    CHECK(broken.result.block[0] % 7 == 3);
  }
  close_test(&test);
  close_test(&broken);
  return NULL;
}

static void test_several_threads(unsigned workers) {
  pthread_t threads[4];
  sg_pool *pool = sg_pool_create(workers);
  for (size_t i = 0; i < COUNT(threads); i++) CHECK(pthread_create(&threads[i], NULL, launch_often, pool) == 0);
  for (size_t i = 0; i < COUNT(threads); i++) pthread_join(threads[i], NULL);
  sg_pool_destroy(pool);
}

static void test_deadline(unsigned workers, uint32_t blocks) {
  sg_pool *pool = sg_pool_create(workers);
  struct test test = open_test(pool, &endless_kernel, blocks, 32);
  test.launch.deadline_ms = 40;
  for (int i = 0; i < 2; i++) {
    uint64_t start = time_now();
    run_to(&test, SG_DEADLINE, "kernel endless: not done after 40 ms, its deadline;");
    CHECK(time_now() - start < 5000000000u);
  }
  launch_often(pool);
  close_test(&test);
  sg_pool_destroy(pool);
}

/* Quick at first; then block 0 waits until another thread of the pool runs a block, which the time of the quick launch
 * gave no reason to wake. */
static int32_t turns_slow(struct sg_env *env, uint64_t first, uint64_t last) {
  uint32_t *others = (uint32_t *)(uintptr_t)param(env, 0);
  (void)last;
  if (others && first) __atomic_store_n(others, 1, __ATOMIC_RELEASE);
  while (others && !first && !__atomic_load_n(others, __ATOMIC_ACQUIRE))
    if (must_stop(env)) return SG_STOPPED;
  return SG_DONE;
}

static void test_late_help(void) {
  sg_pool *pool = sg_pool_create(2);
  const struct sg_kernel kernel = {HEAD("turns_slow", 0), .param_bytes = 8, .run = (void *)turns_slow};
  struct test test = open_test(pool, &kernel, 10000, 32);
  uint32_t others = 0;
  uint64_t params = 0;
  test.launch.params = (const uint8_t *)&params;
  test.launch.params_size = 8;
  for (int i = 0; i < 3; i++) run(&test);
  params = (uint64_t)(uintptr_t)&others;
  run(&test);
  CHECK(test.result.nanoseconds < 10000000000u);
  close_test(&test);
  sg_pool_destroy(pool);
}

static void test_fork(void) {
  sg_pool *pool = sg_pool_create(3);
  launch_often(pool);
  pid_t child = fork();
  if (child == 0) {
    struct test test = open_test(pool, &endless_kernel, 100, 32);
    run_to(&test, SG_BAD_LAUNCH, "the pool belongs to the process that this one was forked from");
    sg_pool_destroy(pool);
    pool = sg_pool_create(2);
    launch_often(pool);
    sg_pool_destroy(pool);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  launch_often(pool);
  sg_pool_destroy(pool);
}

static volatile sig_atomic_t signals_elsewhere;
static pthread_t main_thread;

static void on_signal(int number) {
  (void)number;
  if (!pthread_equal(pthread_self(), main_thread)) signals_elsewhere = 1;
}

/* The host's signals reach its own threads only: here none, as the only one of them blocks the signal. */
static void test_signals(void) {
  sigset_t alarms;
  struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
  sg_pool *pool = sg_pool_create(4);
  uint32_t out[100] = {0};
  uint64_t params = (uint64_t)(uintptr_t)out;
  struct test first = open_test(pool, &add_kernel, COUNT(out), 32);
  first.launch.params = (const uint8_t *)&params;
  first.launch.params_size = 8;
  run(&first); /* starts the threads */
  main_thread = pthread_self();
  signal(SIGALRM, on_signal);
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  struct test test = open_test(pool, &endless_kernel, 4, 32);
  test.launch.deadline_ms = 40;
  run_to(&test, SG_DEADLINE, "4 of 4 blocks had started");
  setitimer(ITIMER_REAL, &never, NULL);
  pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
  CHECK(!signals_elsewhere);
  close_test(&first);
  close_test(&test);
  sg_pool_destroy(pool);
}

int main(void) {
  sg_pool_destroy(sg_pool_create(0));
  test_several_threads(1);
  test_several_threads(3);
  test_deadline(1, 1);
  test_deadline(2, 50);
  test_late_help();
  if (FORKS) test_fork();
  test_signals();
  return 0;
}
