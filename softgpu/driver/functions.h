/* What cuGetProcAddress finds; the table is made from tessera/driver_api/functions.tsv. */
#ifndef SOFTGPU_FUNCTIONS_H
#define SOFTGPU_FUNCTIONS_H

typedef void (*function_t)(void);

/* A form of a function, and its twin with a default stream in each thread, if it has one. */
struct form {
  const char *name;
  int since, twin_since;
  function_t function, twin;
};

extern const struct form forms[]; /* by name, the oldest form first */
extern const unsigned form_count;

#endif
