/* What the generated functions that programs call are made of. */
#ifndef SOFTGPU_WRAPPERS_H
#define SOFTGPU_WRAPPERS_H

#define SOFTGPU_WRAPPERS
#include "api.h"
#include "graphics.h"
#include "instrument.h"

#define EXPORTED __attribute__((visibility("default")))

/* The body of one: straight to the driver's own function, unless calls are looked at. Two functions, so that the first
 * has nothing on the stack. */
#define GO_ON(own, looked)                              \
  do {                                                  \
    if (__builtin_expect(!instrument_on, 1)) return own; \
    return looked;                                      \
  } while (0)

#define LOOKED_AT static __attribute__((noinline, cold))

#define LOOK(number, own, ...)                                                                \
  do {                                                                                        \
    const struct value values_[] = {__VA_ARGS__};                                             \
    struct looked_at call_;                                                                   \
    CUresult result_ = instrument_before(&call_, &instrumented[number]) ? own : call_.result; \
    return instrument_after(&call_, values_, result_);                                        \
  } while (0)

#define NO_VALUE {0}
#define BYTES_OF(argument) {BYTES, sizeof argument, {.address = &argument}}
#define ADDRESS_OF(argument) {ADDRESS, 0, {.number = argument}} /* an integer that is one */
#define ADDRESS_ANSWER(argument) {ADDRESS_AT, 0, {.address = argument}}
#define VALUE(argument) VALUE_BY_TYPE(argument)(argument)

/* clang-format off */
#define VALUE_BY_TYPE(argument)                                                               \
  _Generic((argument),                                                                        \
    int: signed_value, long: signed_value, long long: signed_value,                           \
    unsigned char: unsigned_value, unsigned short: unsigned_value, unsigned: unsigned_value,  \
    unsigned long: unsigned_value, unsigned long long: unsigned_value,                        \
    float: real_value, double: real_value, const char *: text_value,                          \
    int *: int_answer, unsigned *: unsigned_answer, float *: float_answer,                    \
    unsigned long *: long_answer, unsigned long long *: long_answer, void **: address_answer, \
    CUcontext *: address_answer, CUstream *: address_answer, CUevent *: address_answer,       \
    CUmodule *: address_answer, CUfunction *: address_answer, CUlibrary *: address_answer,    \
    CUkernel *: address_answer, CUlinkState *: address_answer, CUgraph *: address_answer,     \
    CUgraphNode *: address_answer, CUgraphExec *: address_answer, CUuserObject *: address_answer, \
    CUmemoryPool *: address_answer, CUarray *: address_answer, CUgreenCtx *: address_answer,  \
    default: address_value)
/* clang-format on */

static inline struct value signed_value(long long given) { return (struct value){SIGNED, 0,
                                                                                 {.number = (uint64_t)given}}; }
static inline struct value unsigned_value(unsigned long long given) {
  return (struct value){UNSIGNED, 0, {.number = given}};
}
static inline struct value real_value(double given) { return (struct value){REAL, 0, {.real = given}}; }
static inline struct value text_value(const char *given) { return (struct value){TEXT, 0, {.address = given}}; }
static inline struct value address_value(const void *given) { return (struct value){ADDRESS, 0, {.address = given}}; }
static inline struct value int_answer(const int *given) { return (struct value){INT_AT, 0, {.address = given}}; }
static inline struct value unsigned_answer(const unsigned *given) {
  return (struct value){UNSIGNED_AT, 0, {.address = given}};
}
static inline struct value float_answer(const float *given) { return (struct value){FLOAT_AT, 0, {.address = given}}; }
static inline struct value long_answer(const void *given) { return (struct value){LONG_AT, 0, {.address = given}}; }
static inline struct value address_answer(const void *given) { return (struct value){ADDRESS_AT, 0,
                                                                                     {.address = given}}; }

#endif
