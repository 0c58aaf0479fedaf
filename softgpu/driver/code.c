/* Texts and compiled kernels. Kernels are compiled when they are launched first, for the block that they are launched
 * with, which makes them faster; from some number of different blocks on, once for all of them. */
#include "code.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "launch.h"

enum { MOST_VARIANTS = 16 };

static void variant_end(struct variant *variant) {
  sg_kernel_close(variant->handle);
  if (variant->object) dlclose(variant->object);
  free(variant->globals);
  free(variant);
}

static void destroy(struct code *code) {
  for (uint32_t n = 0; code->kernels && n < code->description->kernel_count; n++)
    for (struct variant *variant = code->kernels[n].variants, *next; variant; variant = next) {
      next = variant->next;
      variant_end(variant);
    }
  pthread_mutex_destroy(&code->compiling);
  description_free(code->description);
  free(code->kernels);
  free(code->ptx);
  free(code);
}

struct code *code_hold(struct code *code) {
  code->references++;
  return code;
}

void code_release(struct code *code) {
  if (!--code->references) destroy(code);
}

CUresult code_make(char *ptx, size_t bytes, struct jit *jit, struct code **made) {
  struct sg_failure why = {""};
  struct code *code = calloc(1, sizeof *code);
  if (!code) {
    free(ptx);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pthread_mutex_init(&code->compiling, NULL);
  code->references = 1;
  code->ptx = ptx;
  code->bytes = bytes;
  sg_module_digest(ptx, bytes, code->digest);
  CUresult result = module_describe(ptx, bytes, code->digest, &code->description, &why);
  if (result != CUDA_SUCCESS) {
    jit_error(jit, why.text);
    complain("a module cannot be loaded: %s", why.text);
  } else if (!(code->kernels = calloc(code->description->kernel_count + 1u, sizeof *code->kernels))) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result != CUDA_SUCCESS) {
    code_release(code);
    return result;
  }
  for (uint32_t n = 0; n < code->description->kernel_count; n++)
    code->kernels[n].described = &code->description->kernels[n];
  *made = code;
  return CUDA_SUCCESS;
}

static const struct variant *find(const struct code_kernel *kernel, const struct sg_options *wanted, bool any_block,
                                  unsigned *count) {
  const struct variant *general = NULL;
  *count = 0;
  for (const struct variant *at = kernel->variants; at; at = at->next, (*count)++) {
    if (at->options.flags != wanted->flags || at->options.rounding != wanted->rounding) continue;
    if (any_block || !memcmp(at->options.block, wanted->block, sizeof wanted->block)) return at;
    if (!at->options.block[0]) general = at;
  }
  return general;
}

static bool find_globals(const struct code *code, struct variant *variant) {
  uint32_t count = variant->kernel->global_count;
  variant->globals = calloc(count + 1u, sizeof *variant->globals);
  for (uint32_t n = 0; variant->globals && n < count; n++) {
    const struct description_variable *found = description_variable(code->description, variant->kernel->globals[n]);
    if (!found) {
      complain("kernel %.80s uses %.80s, which its module only declares", variant->kernel->name,
               variant->kernel->globals[n]);
      return false;
    }
    variant->globals[n] = (uint32_t)(found - code->description->variables);
  }
  return variant->globals;
}

static CUresult compile(const struct code *code, struct code_kernel *kernel, const struct sg_options *options) {
  struct sg_failure why = {""};
  struct sg_loaded loaded;
  char error[512];
  enum sg_answer answer = sg_load_kernel(code->ptx, code->bytes, code->digest, kernel->described->name, options,
                                         &loaded,
                                         &why);
  if (answer != SG_ANSWERED) {
    complain("kernel %.80s cannot be compiled: %s", kernel->described->name, why.text);
    return answer_result(answer);
  }
  struct variant *variant = calloc(1, sizeof *variant);
  if (!variant) {
    dlclose(loaded.handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *variant = (struct variant){.options = *options, .kernel = loaded.kernel, .object = loaded.handle};
  if (sg_kernel_wrap(loaded.kernel, &variant->handle, error, sizeof error)) {
    complain("kernel %.80s cannot be used: %s", kernel->described->name, error);
    variant_end(variant);
    return CUDA_ERROR_UNKNOWN;
  }
  if (!find_globals(code, variant)) {
    variant_end(variant);
    return CUDA_ERROR_INVALID_PTX;
  }
  variant->next = kernel->variants;
  kernel->variants = variant;
  return CUDA_SUCCESS;
}

CUresult code_variant(struct code *code, struct code_kernel *kernel, const uint32_t block[3], CUdevice device,
                      const struct variant **variant) {
  const uint32_t *required = kernel->described->required;
  const uint32_t *wanted = block[0] ? block : required;
  struct sg_options options = {{wanted[0], wanted[1], wanted[2]}, launch_flags(), device_rounding(device)};
  bool any_block = !block[0];
  unsigned count;
  if ((*variant = find(kernel, &options, any_block, &count))) return CUDA_SUCCESS;
  pthread_mutex_lock(&code->compiling);
  CUresult result = CUDA_SUCCESS;
  if (!(*variant = find(kernel, &options, any_block, &count))) {
    if (count >= MOST_VARIANTS) memset(options.block, 0, sizeof options.block);
    result = compile(code, kernel, &options);
    *variant = kernel->variants;
  }
  pthread_mutex_unlock(&code->compiling);
  return result;
}

/* Behind the last .target there is, on a line of its own; a text that was described has one. */
int code_target(const struct code *code) {
  const char *at = strstr(code->ptx, ".target");
  at = at ? strstr(at, "sm_") : NULL;
  return at ? atoi(at + 3) : 0;
}
