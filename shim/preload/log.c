/* What a person who looks for trouble can read. The library is silent otherwise. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "doors.h"

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
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  ssize_t written = write(file, line, (size_t)used); /* at once, so that lines of several processes stay whole */
  (void)written;
  close(file);
}
