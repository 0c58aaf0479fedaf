/* dlsym, as programs see it: a driver function that they look up in the driver itself is this library's door.
 *
 * For everything else it has to be as if this function were not there: the loader looks at the return address to know
 * who asks (RTLD_NEXT), so that the entry jumps on without a frame of its own. */
#include <dlfcn.h>
#include <string.h>

#include "doors.h"

typedef void *dlsym_t(void *, const char *);

static dlsym_t *_Atomic loader; /* the loader's own */

/* The thread sanitizer itself calls dlsym, before it can watch any function. */
#define UNWATCHED __attribute__((no_sanitize("thread")))

/* The versions that glibc has it under on x86-64, the newer one first. */
UNWATCHED static dlsym_t *find_loader(void) {
  dlsym_t *found = loader;
  if (found) return found;
  void *address = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (!address) address = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  memcpy(&found, &address, sizeof found);
  loader = found;
  return found;
}

HIDDEN UNWATCHED __attribute__((used)) void *dlsym_target(void) {
  dlsym_t *found = find_loader();
  void *address;
  memcpy(&address, &found, sizeof address);
  return address;
}

void *real_dlsym(void *handle, const char *symbol) {
  dlsym_t *found = find_loader();
  return found ? found(handle, symbol) : NULL;
}

/* A symbol that is not in the list and not in the library that `handle` names. If that is this one, the program means the
 * driver, which may be newer than the list. */
static void *newer(void *handle, const char *symbol) {
  if (symbol[2] < 'A' || symbol[2] > 'Z') return NULL;
  if (real_dlsym(handle, "cuInit") != door_addresses[NUMBER_cuInit] || !doors_open())
    return real_dlsym(handle, symbol); /* once more, for what dlerror says */
  dlerror(); /* what was said of the failure must not be found after a success */
  void *found = real_dlsym(driver_handle(), symbol);
  if (found) {
    say("%s is not in the list of functions: calls of it are not seen", symbol);
    door_given(WIRE_BY_DLSYM, -1, symbol);
  }
  return found;
}

/* A function of the list in a library that is neither the driver nor this one. */
static void *elsewhere(const char *symbol, void *found) {
  Dl_info info;
  SAY_ONCE("%s was looked up in %s, which is not the driver %s: calls there are not seen", symbol,
           dladdr(found, &info) && info.dli_fname ? info.dli_fname : "another library", driver_path());
  return found;
}

/* A symbol that begins with "cu", of a library that is named. */
HIDDEN __attribute__((used)) void *dlsym_of_driver(void *handle, const char *symbol) {
  void *found = real_dlsym(handle, symbol);
  int number = form_number(symbol);
  if (number < 0) return found ? found : newer(handle, symbol);
  if (!found || !doors_open() || doors_disabled()) return found;
  void *function = driver_function(number);
  if (found == door_addresses[number] && !function) /* this library was asked; the driver lacks the function */
    return real_dlsym(driver_handle(), symbol);
  if (found != door_addresses[number] && found != function) return elsewhere(symbol, found);
  door_given(WIRE_BY_DLSYM, number, symbol);
  return door_addresses[number];
}

__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym,@function\n"
        "dlsym:\n"
        "endbr64\n"
        "leaq 1(%rdi), %rax\n"
        "cmpq $1, %rax\n" /* RTLD_NEXT is -1 and RTLD_DEFAULT 0 */
        "jbe 1f\n"
        "testq %rsi, %rsi\n"
        "je 1f\n"
        "cmpb $'c', (%rsi)\n"
        "jne 1f\n"
        "cmpb $'u', 1(%rsi)\n"
        "je dlsym_of_driver\n"
        "1:\n"
        "pushq %rdi\n"
        "pushq %rsi\n"
        "subq $8, %rsp\n"
        "call dlsym_target\n"
        "addq $8, %rsp\n"
        "popq %rsi\n"
        "popq %rdi\n"
        "jmp *%rax\n"
        ".size dlsym,.-dlsym\n");
