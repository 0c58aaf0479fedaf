/* Descriptions of modules, read from what the compile service writes (softgpu/engine/description.py). The text comes
 * from a file of the cache or from another process: whatever does not fit together is an error. */
#include "description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "json.h"
#include "storage.h"

struct whole {
  struct description description; /* first: it stands for all of it */
  struct storage storage;
  struct description_kernel *kernels;
  struct description_variable *variables;
  const struct description_kernel **kernels_by_name;
  const struct description_variable **variables_by_name;
  const char **unresolved;
  const char **symbols; /* of the relocations of all variables in order, while it is made; NULL: a function's */
  size_t symbol_count;
  bool no_memory;
};

static void *take(struct whole *whole, size_t count, size_t size) {
  void *taken = storage_take(&whole->storage, count, size);
  if (!taken) whole->no_memory = true;
  return taken;
}

/* Room for the elements of the array that comes next. NULL: it has an error, or there is no memory. */
static void *room(struct whole *whole, struct json *json, uint32_t *count, size_t size) {
  size_t found = json_count(json);
  *count = (uint32_t)found;
  return found <= UINT32_MAX ? take(whole, found, size) : NULL;
}

static uint32_t small(struct json *json) {
  uint64_t value = json_unsigned(json);
  if (value > INT32_MAX) json_fail(json);
  return (uint32_t)value;
}

static const char *string(struct whole *whole, struct json *json) {
  struct json_text text = json_string(json);
  char *copy = take(whole, text.length + 1, 1);
  if (copy) memcpy(copy, text.start, text.length);
  return copy;
}

static bool power_of_two(uint64_t value) { return value && !(value & (value - 1)); }

static void read_parameter(struct json *json, struct description_parameter *parameter) {
  bool first;
  for (json_open(json, '{', &first); json_next(json, '{', &first);) {
    struct json_text key = json_key(json);
    if (json_is(key, "offset"))
      parameter->offset = small(json);
    else if (json_is(key, "size"))
      parameter->size = small(json);
    else if (json_is(key, "align"))
      parameter->align = small(json);
    else
      json_skip(json);
  }
}

/* Up to three numbers; `count`: how many there are. */
static unsigned read_extents(struct json *json, uint32_t extents[3]) {
  bool first;
  unsigned count = 0;
  for (json_open(json, '[', &first); json_next(json, '[', &first); count++) {
    uint32_t value = small(json);
    if (count < 3) extents[count] = value;
  }
  return count;
}

static uint32_t product(const uint32_t extents[3]) {
  uint64_t all = 1;
  for (int i = 0; i < 3; i++) all = all * extents[i] > UINT32_MAX ? UINT32_MAX : all * extents[i];
  return (uint32_t)all;
}

static void read_directives(struct json *json, struct description_kernel *kernel) {
  bool first;
  uint32_t most = 0, needed = 0;
  for (json_open(json, '{', &first); json_next(json, '{', &first);) {
    struct json_text key = json_key(json);
    uint32_t numbers[3] = {1, 1, 1};
    unsigned count = read_extents(json, numbers);
    if (!count) continue;
    if (json_is(key, "maxntid")) {
      most = product(numbers);
    } else if (json_is(key, "reqntid")) {
      memcpy(kernel->required, numbers, sizeof numbers);
      needed = product(numbers);
    } else if (json_is(key, "reqnctapercluster")) {
      memcpy(kernel->cluster, numbers, sizeof numbers);
    } else if (json_is(key, "minnctapersm")) {
      kernel->min_blocks = numbers[0];
    } else if (json_is(key, "maxnreg")) {
      kernel->max_registers = numbers[0];
    }
  }
  kernel->max_threads = most ? most : needed;
}

static bool placed(const struct description_kernel *kernel) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    const struct description_parameter *parameter = &kernel->parameters[i];
    if (parameter->offset < end || !power_of_two(parameter->align) || parameter->offset % parameter->align) return false;
    end = (uint64_t)parameter->offset + parameter->size;
  }
  return end <= kernel->parameter_bytes;
}

static void read_kernel(struct whole *whole, struct json *json, struct description_kernel *kernel) {
  bool first;
  for (json_open(json, '{', &first); json_next(json, '{', &first);) {
    struct json_text key = json_key(json);
    if (json_is(key, "name")) {
      kernel->name = string(whole, json);
    } else if (json_is(key, "parameter_bytes")) {
      kernel->parameter_bytes = small(json);
    } else if (json_is(key, "registers")) {
      kernel->registers = small(json);
    } else if (json_is(key, "directives")) {
      read_directives(json, kernel);
    } else if (json_is(key, "parameters") && !kernel->parameters) {
      struct description_parameter *list = room(whole, json, &kernel->parameter_count, sizeof *list), *next = list;
      bool before;
      for (json_open(json, '[', &before); list && json_next(json, '[', &before);) read_parameter(json, next++);
      kernel->parameters = list;
    } else {
      json_skip(json);
    }
  }
  if (!kernel->name || !kernel->parameters || !kernel->registers || !placed(kernel)) json_fail(json);
}

static void read_relocation(struct whole *whole, struct json *json, struct description_relocation *relocation,
                            const char **symbol) {
  bool first, fixed = false;
  uint64_t from = 8, bytes = 0;
  for (json_open(json, '{', &first); json_next(json, '{', &first);) {
    struct json_text key = json_key(json);
    if (json_is(key, "offset")) {
      relocation->offset = json_unsigned(json);
    } else if (json_is(key, "address")) {
      relocation->address = json_unsigned(json);
      fixed = true;
    } else if (json_is(key, "addend")) {
      relocation->addend = json_signed(json);
    } else if (json_is(key, "first")) {
      from = json_unsigned(json);
    } else if (json_is(key, "bytes")) {
      bytes = json_unsigned(json);
    } else if (json_is(key, "symbol")) {
      *symbol = string(whole, json);
    } else {
      json_skip(json);
    }
  }
  if (from > 7 || bytes < 1 || bytes > 8 - from || !*symbol) json_fail(json);
  relocation->first = (uint8_t)from;
  relocation->bytes = (uint8_t)bytes;
  relocation->variable = -1;
  if (fixed) *symbol = NULL;
}

static void read_relocations(struct whole *whole, struct json *json, struct description_variable *variable) {
  struct description_relocation *list = room(whole, json, &variable->relocation_count, sizeof *list), *next = list;
  size_t count = whole->symbol_count + variable->relocation_count;
  const char **symbols = variable->relocation_count ? realloc(whole->symbols, count * sizeof *symbols) : whole->symbols;
  bool first;
  variable->relocations = list;
  if (variable->relocation_count && !symbols) whole->no_memory = true;
  if (symbols) whole->symbols = symbols;
  if (whole->no_memory) json_fail(json);
  for (json_open(json, '[', &first); json_next(json, '[', &first); next++) {
    symbols[whole->symbol_count] = NULL;
    read_relocation(whole, json, next, &symbols[whole->symbol_count++]);
  }
}

static int digit(char byte) {
  return byte >= '0' && byte <= '9' ? byte - '0' : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static void read_bytes(struct whole *whole, struct json *json, struct description_variable *variable) {
  struct json_text text = json_string(json);
  uint8_t *bytes = take(whole, text.length / 2, 1);
  if (!bytes || text.length % 2) json_fail(json);
  for (size_t i = 0; !json->failed && i < text.length / 2; i++) {
    int high = digit(text.start[2 * i]), low = digit(text.start[2 * i + 1]);
    if (high < 0 || low < 0)
      json_fail(json);
    else
      bytes[i] = (uint8_t)(high << 4 | low);
  }
  variable->initial = bytes;
  variable->initial_bytes = text.length / 2;
}

static void read_space(struct json *json, struct description_variable *variable) {
  struct json_text space = json_string(json);
  variable->constant = json_is(space, "const");
  if (!variable->constant && !json_is(space, "global")) json_fail(json);
}

static bool fits(const struct description_variable *variable) {
  for (uint32_t i = 0; i < variable->relocation_count; i++) {
    const struct description_relocation *relocation = &variable->relocations[i];
    if (relocation->offset > variable->initial_bytes ||
        relocation->bytes > variable->initial_bytes - relocation->offset)
      return false;
  }
  return variable->initial_bytes <= variable->size && power_of_two(variable->align);
}

static void read_variable(struct whole *whole, struct json *json, struct description_variable *variable) {
  bool first;
  for (json_open(json, '{', &first); json_next(json, '{', &first);) {
    struct json_text key = json_key(json);
    if (json_is(key, "name"))
      variable->name = string(whole, json);
    else if (json_is(key, "space"))
      read_space(json, variable);
    else if (json_is(key, "size"))
      variable->size = json_unsigned(json);
    else if (json_is(key, "align"))
      variable->align = json_unsigned(json);
    else if (json_is(key, "initial"))
      read_bytes(whole, json, variable);
    else if (json_is(key, "relocations") && !variable->relocations)
      read_relocations(whole, json, variable);
    else
      json_skip(json);
  }
  if (!variable->name || !variable->initial || !fits(variable)) json_fail(json);
}

static void read_all(struct whole *whole, struct json *json) {
  struct description *description = &whole->description;
  bool first, inner;
  for (json_open(json, '{', &first); json_next(json, '{', &first);) {
    struct json_text key = json_key(json);
    uint32_t n = 0;
    if (json_is(key, "kernels") && !whole->kernels) {
      whole->kernels = room(whole, json, &description->kernel_count, sizeof *whole->kernels);
      for (json_open(json, '[', &inner); whole->kernels && json_next(json, '[', &inner);)
        read_kernel(whole, json, &whole->kernels[n++]);
    } else if (json_is(key, "variables") && !whole->variables) {
      whole->variables = room(whole, json, &description->variable_count, sizeof *whole->variables);
      for (json_open(json, '[', &inner); whole->variables && json_next(json, '[', &inner);)
        read_variable(whole, json, &whole->variables[n++]);
    } else if (json_is(key, "unresolved") && !whole->unresolved) {
      whole->unresolved = room(whole, json, &description->unresolved_count, sizeof *whole->unresolved);
      for (json_open(json, '[', &inner); whole->unresolved && json_next(json, '[', &inner);)
        whole->unresolved[n++] = string(whole, json);
    } else {
      json_skip(json);
    }
    if (whole->no_memory) json_fail(json);
  }
  if (!whole->kernels || !whole->variables || !whole->unresolved) json_fail(json);
}

static int compare_kernels(const void *a, const void *b) {
  return strcmp((*(const struct description_kernel *const *)a)->name,
                (*(const struct description_kernel *const *)b)->name);
}

static int compare_variables(const void *a, const void *b) {
  return strcmp((*(const struct description_variable *const *)a)->name,
                (*(const struct description_variable *const *)b)->name);
}

static bool sort(struct whole *whole) {
  uint32_t kernels = whole->description.kernel_count, variables = whole->description.variable_count;
  whole->kernels_by_name = take(whole, kernels, sizeof *whole->kernels_by_name);
  whole->variables_by_name = take(whole, variables, sizeof *whole->variables_by_name);
  if (whole->no_memory) return false;
  for (uint32_t i = 0; i < kernels; i++) whole->kernels_by_name[i] = &whole->kernels[i];
  for (uint32_t i = 0; i < variables; i++) whole->variables_by_name[i] = &whole->variables[i];
  qsort(whole->kernels_by_name, kernels, sizeof *whole->kernels_by_name, compare_kernels);
  qsort(whole->variables_by_name, variables, sizeof *whole->variables_by_name, compare_variables);
  return true;
}

/* Names in relocations become places of variables; what is not there is unresolved. */
static void resolve(struct whole *whole) {
  const char **symbol = whole->symbols;
  for (uint32_t i = 0; i < whole->description.variable_count; i++) {
    struct description_relocation *list = (struct description_relocation *)whole->variables[i].relocations;
    for (uint32_t n = 0; n < whole->variables[i].relocation_count; n++, symbol++) {
      const struct description_variable *found = *symbol ? description_variable(&whole->description, *symbol) : NULL;
      if (found) list[n].variable = (int32_t)(found - whole->variables);
    }
  }
}

const struct description_kernel *description_kernel(const struct description *description, const char *name) {
  const struct whole *whole = (const struct whole *)description;
  const struct description_kernel wanted = {.name = name}, *key = &wanted;
  const struct description_kernel **found = bsearch(&key, whole->kernels_by_name, description->kernel_count,
                                                    sizeof *found, compare_kernels);
  return found ? *found : NULL;
}

const struct description_variable *description_variable(const struct description *description, const char *name) {
  const struct whole *whole = (const struct whole *)description;
  const struct description_variable wanted = {.name = name}, *key = &wanted;
  const struct description_variable **found = bsearch(&key, whole->variables_by_name, description->variable_count,
                                                      sizeof *found, compare_variables);
  return found ? *found : NULL;
}

void description_free(struct description *description) {
  struct whole *whole = (struct whole *)description;
  if (!whole) return;
  storage_free(&whole->storage);
  free(whole->symbols);
  free(whole);
}

static CUresult read_description(const char *text, size_t bytes, struct description **out, struct sg_failure *why) {
  struct whole *whole = calloc(1, sizeof *whole);
  struct json json = json_begin(text, bytes);
  if (whole) read_all(whole, &json);
  bool good = whole && json_finish(&json) && sort(whole);
  if (good) {
    whole->description.kernels = whole->kernels;
    whole->description.variables = whole->variables;
    whole->description.unresolved = whole->unresolved;
    resolve(whole);
    *out = &whole->description;
    return CUDA_SUCCESS;
  }
  bool no_memory = !whole || whole->no_memory;
  snprintf(why->text, sizeof why->text, "the description of a module %s",
           no_memory ? "needs more memory" : "is damaged");
  description_free((struct description *)whole);
  return no_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
}

CUresult part_describe(const char *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES], struct description **out,
                       struct sg_failure *why) {
  char *text;
  size_t length;
  CHECK(answer_result(sg_describe_module(ptx, bytes, digest, &text, &length, why)));
  CUresult result = read_description(text, length, out, why);
  free(text);
  return result;
}

CUresult module_describe(const char *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES],
                         struct description **out, struct sg_failure *why) {
  CHECK(part_describe(ptx, bytes, digest, out, why));
  if (!(*out)->unresolved_count) return CUDA_SUCCESS;
  snprintf(why->text, sizeof why->text, "undefined reference to '%.200s'", (*out)->unresolved[0]);
  description_free(*out);
  *out = NULL;
  return CUDA_ERROR_INVALID_PTX;
}

CUresult answer_result(enum sg_answer answer) {
  switch (answer) {
    case SG_ANSWERED: return CUDA_SUCCESS;
    /* the text may be good: the engine does not compile all of PTX */
    case SG_UNSUPPORTED: return CUDA_ERROR_NOT_SUPPORTED;
    case SG_INVALID: return CUDA_ERROR_INVALID_PTX;
    case SG_REFUSED:
    case SG_NO_SERVICE: return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    case SG_TOO_LATE: return CUDA_ERROR_TIMEOUT;
    default: return CUDA_ERROR_UNKNOWN;
  }
}
