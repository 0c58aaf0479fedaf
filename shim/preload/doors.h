/* Doors: the symbols that programs see. Each is a jump to what its slot says. At first that opens the driver; from then
 * on it is the driver's function, or the library's own. */
#ifndef TESSERA_DOORS_H
#define TESSERA_DOORS_H

#include <stdbool.h>
#include <stddef.h>

#include "real.h"
#include "wire.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define LIBRARY_MARK "tessera_preloaded" /* a symbol that no driver has */

/* A function of the list, by its number. */
struct form {
  const char *symbol, *name; /* cuMemAlloc_v2, cuMemAlloc */
  int since;                 /* the version of CUDA that brought it */
  bool per_thread;           /* the twin in which stream 0 is the thread's own */
};

extern HIDDEN const struct form forms[FUNCTION_COUNT]; /* by symbol */
extern HIDDEN void *slots[FUNCTION_COUNT];
extern HIDDEN void *const door_addresses[FUNCTION_COUNT]; /* what programs get */
extern HIDDEN void *const own_functions[FUNCTION_COUNT];  /* NULL for those that only pass */

/* Open the driver, in the first call of any thread. False: there is none, or this thread is just about to do so. */
bool doors_open(void);
bool doors_disabled(void); /* TESSERA_DISABLE */
void *driver_handle(void); /* of the loader; NULL without a driver */
const char *driver_path(void);

int first_form(const char *name);    /* the first number whose symbol is not before a name: its forms come from there */
int form_number(const char *symbol); /* -1 for what is no symbol of the list */
void *driver_function(int number);   /* its address in the driver */

/* dlsym.c: the loader's own dlsym, whatever this library shows to others. */
void *real_dlsym(void *handle, const char *symbol);

/* driver_path.c: the file of the driver, in `path` of `size` bytes: what TESSERA_DRIVER says, or what the loader would
 * take if this library were not there. False: there is none. */
bool find_driver(char *path, size_t size);

/* given.c: a program has got a function, by its number, or by its name where the list has none (-1). */
void door_given(enum wire_how how, int number, const char *name);
void doors_given_before(void); /* at the beginning of a session: those of the list */

/* log.c: a line in the file that TESSERA_LOG names; nothing without one. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
/* The same, once for each `*said`. */
#define SAY_ONCE(...)                                                                       \
  do {                                                                                      \
    static _Atomic bool said;                                                               \
    if (!__atomic_exchange_n((bool *)&said, true, __ATOMIC_RELAXED)) say(__VA_ARGS__);      \
  } while (0)

#endif
