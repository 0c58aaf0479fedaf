/* What a module consists of. Plain data, constant once it is made; all of it is freed at once. */
#ifndef SOFTGPU_DESCRIPTION_H
#define SOFTGPU_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "client.h"

/* Of a kernel, in bytes. */
struct description_parameter {
  uint32_t offset, size, align;
};

struct description_kernel {
  const char *name;
  uint32_t parameter_bytes, parameter_count;
  const struct description_parameter *parameters; /* in order */
  uint32_t registers; /* of a thread, by the text: none are given out here (softgpu/engine/pressure.py) */
  /* Performance directives; 0: the kernel has none of that name. */
  uint32_t required[3]; /* .reqntid, extents that are left out are 1 */
  uint32_t max_threads; /* .maxntid, the product; of .reqntid if there is only that */
  uint32_t min_blocks;  /* .minnctapersm */
  uint32_t max_registers; /* .maxnreg */
  uint32_t cluster[3];  /* .reqnctapercluster */
};

/* `bytes` bytes at `offset` of a variable hold bytes first, first + 1, ... of an address: that of a variable, or
 * `address` itself (of a function), plus `addend`. */
struct description_relocation {
  uint64_t offset, address;
  int64_t addend;
  int32_t variable; /* its place in `variables`; -1: `address` counts */
  uint8_t first, bytes;
};

struct description_variable {
  const char *name;
  bool constant; /* in constant memory, else in global memory */
  uint64_t size, align;
  const uint8_t *initial; /* initial_bytes of them, at most `size`; zeros follow */
  uint64_t initial_bytes;
  const struct description_relocation *relocations;
  uint32_t relocation_count;
};

struct description {
  const struct description_kernel *kernels; /* in the order of the text, as are the variables */
  const struct description_variable *variables;
  const char *const *unresolved; /* names that the module uses, and that another one must define */
  uint32_t kernel_count, variable_count, unresolved_count;
};

/* The description of a PTX text with a digest by sg_module_digest. An error has its reason in `why`; one that
 * module_describe finds beside those of part_describe is that something is unresolved. */
CUresult module_describe(const char *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES],
                         struct description **out, struct sg_failure *why);
CUresult part_describe(const char *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES], struct description **out,
                       struct sg_failure *why);
void description_free(struct description *description); /* NULL is allowed */

/* By name; NULL when there is none. */
const struct description_kernel *description_kernel(const struct description *description, const char *name);
const struct description_variable *description_variable(const struct description *description, const char *name);

/* What the engine's client says, as a result of the driver. */
CUresult answer_result(enum sg_answer answer);

#endif
