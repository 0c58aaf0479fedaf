/* Modules: a PTX text in a context, its variables in a device's memory, its kernels. */
#ifndef SOFTGPU_MODULE_H
#define SOFTGPU_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "api.h"
#include "code.h"
#include "stream.h"

struct library;
struct module;

/* What a program may set of a kernel, in bytes and per cent; -1: the usual. */
struct settings {
  _Atomic int dynamic_shared, carveout;
};

struct function {
  struct module *module;
  struct code_kernel *kernel;
  struct settings own, *settings; /* which may be those of a library's kernel */
  _Atomic bool used;              /* launched, made a part of a graph, or loaded by a call */
};

struct module {
  CUcontext context; /* first: `handles_end` */
  unsigned long long context_id;
  CUdevice device;
  struct library *library; /* which unloads it, with a reference; NULL: none */
  _Atomic unsigned references; /* one while it is loaded, and one for each command */
  struct code *code;
  uint64_t *variables; /* addresses, in the order of the description */
  struct function *functions;
};

/* A module of some code and of a library, or of none (NULL), of both of which it takes references. */
CUresult module_make(const struct stream_place *place, struct code *code, struct library *library,
                     struct module **module);
/* It is loaded no more: after the work of its context nothing of it can be found. Its handle must be gone. */
void module_drop(struct module *module);
void module_hold(struct module *module);
void module_release(struct module *module);

/* A variable of a call, which gives back what it holds at its end. */
#define HELD_MODULE __attribute__((cleanup(module_let_go))) struct module *
void module_let_go(struct module **module);

struct function *module_function(struct module *module, const char *name); /* NULL: none */
CUresult module_variable(const struct module *module, const char *name, CUdeviceptr *address, size_t *bytes);

/* A context ends, and with it its modules. */
void modules_end(CUcontext context);

#endif
