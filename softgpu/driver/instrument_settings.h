/* What the files of the instrument share. */
#ifndef SOFTGPU_INSTRUMENT_SETTINGS_H
#define SOFTGPU_INSTRUMENT_SETTINGS_H

#include <stdio.h>

#include "instrument.h"

/* Calls of a function that fail, or that come late. */
struct rule {
  struct rule *next;
  char function[80];        /* a name, for all its forms; a symbol; or "*" */
  unsigned long long first; /* the call, from 1 */
  bool onwards;             /* all that follow, too */
  unsigned thread;          /* counts only calls of this one; 0: of all */
  CUresult result;          /* CUDA_SUCCESS: it is late */
  uint64_t microseconds;
  _Atomic unsigned long long calls;
};

/* Constant once the file has been read. */
struct instrument {
  const char *log; /* NULL: none */
  bool calls, accesses, work, left, reuse, loader, good;
  int version;
  struct rule *rules; /* as in the file */
};

/* The file is read at the first call. */
const struct instrument *instrument_settings(void);

/* The calling thread's number: they are numbered from 1 as they make their first calls. */
unsigned instrument_thread(void);

/* Whether the calling thread is in the loader, called by cuInit. */
bool instrument_loading(void);

/* A line of the log: a text that `line_begin` opens and `line_end` writes at once. NULL: no memory. */
struct line {
  FILE *file;
  char *text;
  size_t size;
};
FILE *line_begin(struct line *line);
void line_end(struct line *line);
void line_text(FILE *file, const char *text, size_t most); /* as JSON, of a long one the first `most` bytes */
void line_address(FILE *file, uint64_t address);
void line_bytes(FILE *file, const void *bytes, size_t size); /* in hexadecimal */

void log_call(const struct looked_at *call, const struct value *values, CUresult result, uint64_t end);

#endif
