/* What a person who looks for trouble can read. The library is silent otherwise. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doors.h"
#include "session.h"

/* Past the limit on files' sizes the system would end the program, and so it would for a pipe whose reader has gone. */
static bool can_take(int file, size_t more) {
  struct rlimit limit;
  struct stat now;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && fstat(file, &now) == 0 && !S_ISFIFO(now.st_mode) &&
         (limit.rlim_cur == RLIM_INFINITY || (rlim_t)now.st_size + more <= limit.rlim_cur);
}

void say(const char *format, ...) {
  const char *path = getenv("TESSERA_LOG");
  if (!path || *path != '/') return;
  char line[1024];
  int used = snprintf(line, sizeof line, "tessera[%d]: ", (int)getpid());
  va_list arguments;
  va_start(arguments, format);
  int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
  va_end(arguments);
  if (more < 0) return;
  used += more;
  if ((size_t)used > sizeof line - 2) used = sizeof line - 2;
  line[used++] = '\n';
  int before = errno, cancel;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  struct standard standard;
  standard_taken(&standard);
  /* Nobody is waited for who might read a pipe. */
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file >= 0) {
    /* At once, so that lines of several processes stay whole. */
    ssize_t written = can_take(file, (size_t)used) ? write(file, line, (size_t)used) : 0;
    (void)written;
    close(file);
  }
  standard_free(&standard);
  pthread_setcancelstate(cancel, NULL);
  errno = before;
}
