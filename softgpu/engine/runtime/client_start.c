/* Connects to the compile service and starts it where it does not run, as softgpu/engine/service/start.py does.
 *
 * The program that we are in must not notice: no child for it to wait for, no SIGCHLD, none of its descriptors, signal
 * settings or preloaded libraries in the service, and nothing that depends on its size. So the service is the child of
 * a process that ends at once and that sends no signal; both share our memory until they call execve or end, as those
 * of posix_spawn do, and run on stacks of their own. They end by returning: sanitizers look at the stack of who calls
 * _exit, and take these for overflows. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client_internal.h"

#define STACK_BYTES 65536
#define READY 3         /* the service's descriptor for the byte that says it answers */
#define FIRST_MOVED 10  /* descriptors are moved above those that the service gets */
#define LOG_SHOWN 500

extern char **environ;

struct launch {
  char **arguments;
  char **environment;
  char *stack; /* of the second process */
  int null, log, ready;
  int most; /* descriptors, where close_range is missing */
  int error;
};

static void close_others(int most) {
#ifdef SYS_close_range
  if (!syscall(SYS_close_range, READY + 1, ~0u, 0))
    return;
#endif
  for (int i = READY + 1; i < most; i++)
    close(i);
}

static int be_service(void *argument) {
  struct launch *launch = argument;
  sigset_t none;
  for (int number = 1; number < _NSIG; number++)
    signal(number, SIG_DFL);
  if (dup2(launch->null, 0) < 0 || dup2(launch->null, 1) < 0 || dup2(launch->log, 2) < 0 ||
      dup2(launch->ready, READY) < 0 || chdir("/")) {
    launch->error = errno;
    return 127;
  }
  close_others(launch->most);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, 0);
  execve(launch->arguments[0], launch->arguments, launch->environment);
  launch->error = errno;
  return 127;
}

static int be_between(void *argument) {
  struct launch *launch = argument;
  setsid();
  if (clone(be_service, launch->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, launch) < 0)
    launch->error = errno;
  return 0;
}

/* Run the launch; 0, or -1 with errno set if execve or anything before it failed. */
static int run_detached(struct launch *launch) {
  char *stacks = mmap(0, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  sigset_t all, before;
  if (stacks == MAP_FAILED)
    return -1;
  launch->stack = stacks + STACK_BYTES;
  launch->most = (int)sysconf(_SC_OPEN_MAX);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the program may run in the processes */
  const pid_t process = clone(be_between, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, launch);
  if (process < 0)
    launch->error = errno;
  while (process > 0 && waitpid(process, 0, __WALL) < 0 && errno == EINTR)
    ;
  pthread_sigmask(SIG_SETMASK, &before, 0);
  munmap(stacks, 2 * STACK_BYTES);
  errno = launch->error;
  return launch->error ? -1 : 0;
}

/* The service's environment, to be freed: ours without what would change the interpreter, with `path`, and no threads
 * in numpy, because the service forks. */
static char **service_environment(char *path) {
  static char threads[] = "OPENBLAS_NUM_THREADS=1";
  size_t count = 0, kept = 0;
  while (environ[count])
    count++;
  char **made = malloc((count + 3) * sizeof *made);
  if (!made)
    return 0;
  for (size_t i = 0; i < count; i++)
    if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "LD_AUDIT=", 9) && strncmp(environ[i], "PYTHON", 6) &&
        strncmp(environ[i], threads, strlen("OPENBLAS_NUM_THREADS=")))
      made[kept++] = environ[i];
  made[kept++] = path;
  made[kept++] = threads;
  made[kept] = 0;
  return made;
}

/* The end of the service's log, on one line. */
static void log_text(const char *path, char text[LOG_SHOWN + 1]) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const off_t size = file < 0 ? 0 : lseek(file, 0, SEEK_END);
  const ssize_t got = size > 0 ? pread(file, text, LOG_SHOWN, size > LOG_SHOWN ? size - LOG_SHOWN : 0) : 0;
  text[got > 0 ? got : 0] = 0;
  for (char *c = text; *c; c++)
    if (*c == '\n')
      *c = ' ';
  if (file >= 0)
    close(file);
}

static int moved(int file) {
  const int higher = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, FIRST_MOVED);
  const int error = errno;
  if (file >= 0)
    close(file);
  errno = error;
  return higher;
}

/* Wait for the byte that says the service answers. */
static enum sg_answer await_ready(int hear, int64_t deadline, const struct sg_service_paths *paths,
                                  struct sg_failure *failure) {
  char log[LOG_SHOWN + 1], byte = 0;
  for (;;) {
    struct pollfd waiting = {hear, POLLIN, 0};
    const int64_t left = deadline - sg_milliseconds();
    const int ready = left > 0 ? poll(&waiting, 1, (int)left) : 0;
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready > 0 && read(hear, &byte, 1) == 1)
      return SG_ANSWERED;
    log_text(paths->log, log);
    if (ready > 0) {
      sg_say(failure, "the compile service did not start; its log: %s", log[0] ? log : "(empty)");
      return SG_NO_SERVICE;
    }
    sg_say(failure, "the compile service did not start in time; its log: %s", log[0] ? log : "(empty)");
    return SG_TOO_LATE;
  }
}

static enum sg_answer start(const struct sg_engine_info *engine, const struct sg_service_paths *paths, int64_t deadline,
                            struct sg_failure *failure) {
  const char *named = getenv("SOFTGPU_PYTHON");
  const char *python = named && named[0] ? named : engine->python;
  char path[SG_PATH_BYTES + 16];
  snprintf(path, sizeof path, "PYTHONPATH=%s", engine->root);
  char *arguments[] = {(char *)python, "-P", "-m", "softgpu.engine.service", "--engine", (char *)engine->version,
                       "--ready", "3", 0};
  struct launch launch = {.arguments = arguments, .environment = service_environment(path), .null = -1, .log = -1};
  enum sg_answer answer = SG_NO_SERVICE;
  int pipes[2] = {-1, -1};
  launch.null = moved(open("/dev/null", O_RDWR | O_CLOEXEC));
  launch.log = moved(open(paths->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  launch.ready = !pipe2(pipes, O_CLOEXEC) ? moved(pipes[1]) : -1;
  if (!launch.environment || launch.null < 0 || launch.log < 0 || launch.ready < 0 || run_detached(&launch)) {
    sg_say(failure, "the compile service cannot be started with the interpreter %s: %s", python, strerror(errno));
  } else {
    close(launch.ready);
    launch.ready = -1;
    answer = await_ready(pipes[0], deadline, paths, failure);
  }
  const int opened[] = {launch.null, launch.log, launch.ready, pipes[0]};
  for (int i = 0; i < 4; i++)
    if (opened[i] >= 0)
      close(opened[i]);
  free(launch.environment);
  return answer;
}

/* A connection to the service if it runs, and belongs to this user; else -1. */
static int connected(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct ucred peer;
  socklen_t size = sizeof peer;
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0)
    return -1;
  memcpy(address.sun_path, path, strlen(path) + 1);
  int failed;
  do
    failed = connect(connection, (struct sockaddr *)&address, sizeof address);
  while (failed && errno == EINTR);
  if (!failed && !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid() &&
      !fcntl(connection, F_SETFL, O_NONBLOCK))
    return connection;
  close(connection);
  return -1;
}

int sg_service_connection(const struct sg_engine_info *engine, int milliseconds, enum sg_answer *answer,
                          struct sg_failure *failure) {
  const int64_t deadline = sg_milliseconds() + milliseconds;
  const struct timespec pause = {0, 10000000};
  struct sg_service_paths paths;
  *answer = SG_NO_SERVICE;
  if (sg_service_paths(engine->version, &paths, failure))
    return -1;
  int connection = connected(paths.socket);
  if (connection >= 0)
    return connection;
  const int turn = open(paths.turn, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (turn < 0) {
    sg_say(failure, "%s cannot be opened: %s", paths.turn, strerror(errno));
    return -1;
  }
  while (connection < 0 && flock(turn, LOCK_EX | LOCK_NB)) {
    if (sg_milliseconds() > deadline) {
      sg_say(failure, "another process did not get the compile service started in time");
      *answer = SG_TOO_LATE;
      close(turn);
      return -1;
    }
    nanosleep(&pause, 0);
    connection = connected(paths.socket);
  }
  if (connection < 0)
    connection = connected(paths.socket);
  if (connection < 0) {
    *answer = start(engine, &paths, deadline, failure);
    if (*answer == SG_ANSWERED && (connection = connected(paths.socket)) < 0) {
      sg_say(failure, "the compile service ended at once; its log is %s", paths.log);
      *answer = SG_NO_SERVICE;
    }
  }
  flock(turn, LOCK_UN); /* also for copies of the descriptor that a fork made */
  close(turn);
  return connection;
}
