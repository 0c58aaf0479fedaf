/* The log: JSON lines in a file of each process. docs/schema/instrument.json. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "instrument_settings.h"
#include "softgpu_engine.h"

enum { MOST_TEXT = 200 }; /* bytes of an argument */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1; /* of the process `owner` */
static pid_t owner;
static bool failed; /* and said so */

void line_text(FILE *to, const char *text, size_t most) {
  fputc('"', to);
  for (size_t n = 0; text[n] && n < most; n++) {
    unsigned char byte = (unsigned char)text[n];
    if (byte == '"' || byte == '\\')
      fprintf(to, "\\%c", byte);
    else if (byte < 32 || byte > 126) /* of what is no ASCII each byte, as Latin-1 */
      fprintf(to, "\\u%04x", byte);
    else
      fputc(byte, to);
  }
  fputc('"', to);
}

FILE *line_begin(struct line *line) { return line->file = open_memstream(&line->text, &line->size); }

static bool write_all(const char *text, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t written = write(file, text + done, size - done);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) done += (size_t)written;
  }
  return true;
}

/* What process this is. The lock is held. */
static bool write_head(void) {
  struct line line;
  char program[512] = "";
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (!line_begin(&line)) return false;
  fprintf(line.file, "{\"process\": %d, \"program\": ", (int)owner);
  line_text(line.file, length > 0 ? program : "", sizeof program);
  fprintf(line.file, ", \"start_ns\": %llu, \"unix_ns\": %llu}\n", (unsigned long long)nanoseconds_now(),
          (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
  bool good = !fclose(line.file) && write_all(line.text, line.size);
  free(line.text);
  return good;
}

static void take_lock(void) { pthread_mutex_lock(&lock); }
static void give_lock(void) { pthread_mutex_unlock(&lock); }

/* The file of this process: after a fork the child has its own. The lock is held. */
static bool open_file(void) {
  char path[4096];
  pid_t process = getpid();
  if (file >= 0 && owner == process) return true;
  if (file >= 0) close(file);
  if (!owner) pthread_atfork(take_lock, give_lock, give_lock); /* no child finds it taken by a thread that it has not */
  owner = process;
  int length = snprintf(path, sizeof path, "%s.%d", instrument_settings()->log, (int)process);
  file = length > 0 && (size_t)length < sizeof path
             ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
             : -1;
  if (file >= 0 && write_head()) return true;
  if (!failed) complain("the log %.300s cannot be written: %s", path, strerror(errno));
  failed = true;
  return false;
}

void line_end(struct line *line) {
  bool whole = !fclose(line->file);
  pthread_mutex_lock(&lock);
  if (whole && open_file() && !write_all(line->text, line->size) && !failed) {
    complain("the log of calls cannot be written: %s", strerror(errno));
    failed = true;
  }
  pthread_mutex_unlock(&lock);
  free(line->text);
}

void line_address(FILE *to, uint64_t address) { fprintf(to, "\"0x%llx\"", (unsigned long long)address); }

void line_bytes(FILE *to, const void *given, size_t size) {
  const unsigned char *bytes = given;
  fputc('"', to);
  for (size_t n = 0; n < size; n++) fprintf(to, "%02x", bytes[n]);
  fputc('"', to);
}

/* Not every one is a number in JSON. */
static void log_real(FILE *to, double real) {
  const char *quote = isfinite(real) ? "" : "\"";
  fprintf(to, "%s%.9g%s", quote, real, quote);
}

static void log_value(FILE *to, const struct value *value) {
  switch (value->kind) {
    case UNSIGNED: fprintf(to, "%llu", (unsigned long long)value->number); break;
    case SIGNED: fprintf(to, "%lld", (long long)value->number); break;
    case REAL: log_real(to, value->real); break;
    case TEXT:
      if (value->address)
        line_text(to, value->address, MOST_TEXT);
      else
        fputs("null", to);
      break;
    case BYTES: line_bytes(to, value->address, value->size); break;
    default: line_address(to, (uint64_t)(uintptr_t)value->address);
  }
}

/* What a function has answered, where its first parameter points to. False: it is no such function. */
static bool answer(const struct value *value, struct value *found) {
  if (!value->address) return false;
  switch (value->kind) {
    case INT_AT: *found = (struct value){SIGNED, 0, {.number = (uint64_t) * (const int *)value->address}}; break;
    case UNSIGNED_AT: *found = (struct value){UNSIGNED, 0, {.number = *(const unsigned *)value->address}}; break;
    case LONG_AT: *found = (struct value){UNSIGNED, 0, {.number = *(const uint64_t *)value->address}}; break;
    case FLOAT_AT: *found = (struct value){REAL, 0, {.real = (double)*(const float *)value->address}}; break;
    case ADDRESS_AT: *found = (struct value){ADDRESS, 0, {.address = *(void *const *)value->address}}; break;
    default: return false;
  }
  return true;
}

void log_call(const struct looked_at *call, const struct value *values, CUresult result, uint64_t end) {
  const struct exported *function = call->function;
  struct line line;
  struct value found;
  FILE *to = line_begin(&line);
  if (!to) return;
  fprintf(to, "{\"call\": \"%s\", \"arguments\": {", function->symbol);
  for (unsigned n = 0; n < function->count; n++) {
    fprintf(to, "%s\"%s\": ", n ? ", " : "", function->parameters[n]);
    log_value(to, &values[n]);
  }
  const char *name = result_name(result);
  fprintf(to, "}, \"result\": \"%s\", ", name ? name : "");
  if (result == CUDA_SUCCESS && function->count && answer(&values[0], &found)) {
    fputs("\"answer\": ", to);
    log_value(to, &found);
    fputs(", ", to);
  }
  if (!call->made) fputs("\"made\": false, ", to);
  fprintf(to, "\"thread\": %u, \"system_thread\": %d, \"start_ns\": %llu, \"duration_ns\": %llu}\n",
          instrument_thread(),
          (int)gettid(), (unsigned long long)call->start, (unsigned long long)(end - call->start));
  line_end(&line);
}

static void log_ranges(FILE *to, const char *name, const struct sg_ranges *ranges) {
  fprintf(to, ", \"%s\": [", name);
  for (uint64_t n = 0; n < ranges->count; n++) {
    fputs(n ? ", [" : "[", to);
    line_address(to, ranges->items[n].start);
    fputs(", ", to);
    line_address(to, ranges->items[n].end);
    fputc(']', to);
  }
  fputc(']', to);
}

void instrument_launch(const struct launched *launch, const struct sg_result *result) {
  struct line line;
  FILE *to = line_begin(&line);
  if (!to) return;
  fputs("{\"launch\": ", to);
  line_text(to, launch->kernel, SIZE_MAX);
  fprintf(to, ", \"device\": %d, \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, \"outcome\": %d, "
          "\"duration_ns\": %llu", launch->device, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
          launch->block[1], launch->block[2], launch->shared, result->status, (unsigned long long)result->nanoseconds);
  log_ranges(to, "read", &result->read);
  log_ranges(to, "written", &result->written);
  log_ranges(to, "atomic", &result->atomic);
  fputs("}\n", to);
  line_end(&line);
}
