/* The first call of a driver function: the driver is opened and the slots are set. */
#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doors.h"
#include "nap.h"
#include "session.h"

/* What a thread waits for another one that opens the driver. That one may wait for this one: the driver's constructor
 * has started it. */
enum { OPENING_SECONDS = 10 };

struct real real;

static struct {
  _Atomic int process; /* that opens it: a child that was forked off meanwhile does that itself */
  _Atomic bool done;
  bool disabled;
  void *handle;
  char path[PATH_MAX];
} driver; /* set once, before `done` */

static _Thread_local bool opening; /* this thread is in `doors_open` */

_Static_assert(sizeof(struct real) == FUNCTION_COUNT * sizeof(void *), "one pointer for each function");

bool doors_disabled(void) { return driver.disabled; }
void *driver_handle(void) { return driver.handle; }
const char *driver_path(void) { return driver.path; }

void *driver_function(int number) {
  void *found;
  memcpy(&found, (const char *)&real + (size_t)number * sizeof found, sizeof found);
  return found;
}

int first_form(const char *name) {
  int low = 0, high = FUNCTION_COUNT;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (strcmp(forms[middle].symbol, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int form_number(const char *symbol) {
  int found = first_form(symbol);
  return found < FUNCTION_COUNT && !strcmp(forms[found].symbol, symbol) ? found : -1;
}

/* Without a driver. */
static CUresult no_driver(void) {
  SAY_ONCE("no CUDA driver was found: every driver function returns CUDA_ERROR_NO_DEVICE");
  return CUDA_ERROR_NO_DEVICE;
}

static CUresult no_driver_text(CUresult error, const char **text) {
  (void)error;
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = "CUDA_ERROR_NO_DEVICE";
  return CUDA_SUCCESS;
}

/* In a driver that is older than the function. */
static CUresult not_in_driver(void) {
  SAY_ONCE("a function was called that the driver %s does not have", driver.path);
  return CUDA_ERROR_NOT_SUPPORTED;
}

/* In a thread that is just opening the driver: a constructor of the driver's own. */
static CUresult too_early(void) { return CUDA_ERROR_NOT_INITIALIZED; }

static void *slot_for(int number, void *function) {
  bool text = number == NUMBER_cuGetErrorName || number == NUMBER_cuGetErrorString;
  if (!driver.handle) return text ? (void *)no_driver_text : (void *)no_driver;
  if (!function) return (void *)not_in_driver;
  if (driver.disabled || !own_functions[number]) return function;
  bool resolves = number == NUMBER_cuGetProcAddress || number == NUMBER_cuGetProcAddress_v2;
  return session_wanted() || resolves ? own_functions[number] : function;
}

/* Also a copy of this library, by another path, is none. */
static void *open_driver(char *path, size_t size) {
  if (!find_driver(path, size)) {
    *path = 0;
    return NULL;
  }
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *trouble = dlerror();
  if (!handle) SAY_ONCE("the CUDA driver %s cannot be opened: %s", path, trouble ? trouble : "?");
  if (!handle || !real_dlsym(handle, LIBRARY_MARK)) return handle;
  SAY_ONCE("%s is this library, and no CUDA driver", path);
  dlclose(handle);
  return NULL;
}

static void open_doors(void) {
  const char *disable = getenv("TESSERA_DISABLE");
  driver.handle = open_driver(driver.path, sizeof driver.path);
  driver.disabled = disable && *disable && strcmp(disable, "0") != 0;
  for (int i = 0; driver.handle && i < FUNCTION_COUNT; i++) {
    void *found = real_dlsym(driver.handle, forms[i].symbol);
    memcpy((char *)&real + (size_t)i * sizeof found, &found, sizeof found);
  }
  for (int i = 0; i < FUNCTION_COUNT; i++)
    __atomic_store_n(&slots[i], slot_for(i, driver_function(i)), __ATOMIC_RELEASE);
  dlerror(); /* what an older driver lacks is no error of the program's */
  driver.done = true;
}

/* One thread asks the loader, and the others wait for it, holding none of our locks. */
bool doors_open(void) {
  if (driver.done) return driver.handle != NULL;
  if (opening) return false;
  int other = driver.process, own = getpid();
  if (other != own && atomic_compare_exchange_strong(&driver.process, &other, own)) {
    opening = true;
    open_doors();
    opening = false;
  } else {
    uint64_t deadline = now() + OPENING_SECONDS * 1000000000ull;
    while (!driver.done && now() < deadline) nap(NAP);
  }
  return driver.done && driver.handle;
}

/* From the slots as they are at first, with the number of the door; gives what to jump to. */
HIDDEN __attribute__((used)) void *first_call(size_t number) {
  doors_open();
  if (!driver.done) return (void *)too_early;
  if (!driver.disabled && driver.handle && session_wanted()) session_ready();
  return __atomic_load_n(&slots[number], __ATOMIC_ACQUIRE);
}

/* From a note stub: the name of the call is recorded, and the driver's function comes next. */
HIDDEN __attribute__((used)) void *note_call(size_t number) {
  session_note((unsigned)number);
  void *function = driver_function((int)number);
  return function ? function : (void *)not_in_driver;
}

/* Arguments are kept where they are, also those in vector registers. */
#define COMMON(name, target)                                                                                      \
  __asm__(".text\n.globl " #name "\n.hidden " #name "\n" #name ":\n" \
          "pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\npushq %rax\npushq %r10\n"        \
          "subq $128, %rsp\n"                                                                                     \
          "movups %xmm0, (%rsp)\nmovups %xmm1, 16(%rsp)\nmovups %xmm2, 32(%rsp)\nmovups %xmm3, 48(%rsp)\n"        \
          "movups %xmm4, 64(%rsp)\nmovups %xmm5, 80(%rsp)\nmovups %xmm6, 96(%rsp)\nmovups %xmm7, 112(%rsp)\n"     \
          "movq 192(%rsp), %rdi\n"                                                                                \
          "call " #target "\n"                                                                                    \
          "movq %rax, %r11\n"                                                                                     \
          "movups (%rsp), %xmm0\nmovups 16(%rsp), %xmm1\nmovups 32(%rsp), %xmm2\nmovups 48(%rsp), %xmm3\n"        \
          "movups 64(%rsp), %xmm4\nmovups 80(%rsp), %xmm5\nmovups 96(%rsp), %xmm6\nmovups 112(%rsp), %xmm7\n"     \
          "addq $128, %rsp\n"                                                                                     \
          "popq %r10\npopq %rax\npopq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\n"                \
          "addq $8, %rsp\n"                                                                                       \
          "jmp *%r11\n")

COMMON(first_common, first_call);
COMMON(note_common, note_call);
