/* What a person is told: lines on standard error, each written at once; times to tell. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "notes.h"
#include "refused.h"

void complain(const char *format, ...) {
  char line[512];
  int start = snprintf(line, sizeof line, "softgpu: ");
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line + start, sizeof line - (size_t)start - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  size_t end = (size_t)start + (size_t)length;
  if (end > sizeof line - 2) end = sizeof line - 2;
  for (size_t n = 0; n < end; n++)
    if ((unsigned char)line[n] < ' ' || line[n] == 0x7f) line[n] = ' '; /* what a program's texts have in them */
  line[end] = '\n';
  ssize_t written = write(STDERR_FILENO, line, end + 1);
  (void)written; /* there is nobody else to tell */
  line[end] = 0;
  note(line);
}

int refuse(const char *symbol, _Atomic unsigned *called) {
  if (!(*called)++) complain("%s is not supported by the software driver", symbol);
  return CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t nanoseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double milliseconds_now(void) { return (double)nanoseconds_now() / 1e6; }
