/* Reads descriptions from standard input, each ended by a zero byte, and prints a line for each: the driver's structures as
 * JSON again, or an error. Where a PTX text is expected it gives the description itself. */
#include "description.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum sg_answer sg_describe_module(const void *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES], char **json,
                                  size_t *json_bytes, struct sg_failure *failure) {
  (void)digest;
  *json = malloc(bytes); /* without a zero byte, so that sanitizers see who reads on */
  *json_bytes = bytes;
  if (!*json) snprintf(failure->text, sizeof failure->text, "no memory");
  if (*json) memcpy(*json, ptx, bytes);
  return *json ? SG_ANSWERED : SG_FAILED;
}

static void show_kernel(const struct description_kernel *kernel) {
  printf("[\"%s\", %u, %u, [", kernel->name, kernel->registers, kernel->parameter_bytes);
  for (uint32_t i = 0; i < kernel->parameter_count; i++)
    printf("%s[%u, %u, %u]", i ? ", " : "", kernel->parameters[i].offset, kernel->parameters[i].size,
           kernel->parameters[i].align);
  printf("], [%u, %u, %u], %u, %u, %u, [%u, %u, %u]]", kernel->required[0], kernel->required[1], kernel->required[2],
         kernel->max_threads, kernel->min_blocks, kernel->max_registers, kernel->cluster[0], kernel->cluster[1],
         kernel->cluster[2]);
}

static void show_variable(const struct description_variable *variable) {
  printf("[\"%s\", %d, %" PRIu64 ", %" PRIu64 ", \"", variable->name, variable->constant, variable->size, variable->align);
  for (uint64_t i = 0; i < variable->initial_bytes; i++) printf("%02x", variable->initial[i]);
  printf("\", [");
  for (uint32_t i = 0; i < variable->relocation_count; i++) {
    const struct description_relocation *at = &variable->relocations[i];
    printf("%s[%" PRIu64 ", %d, %" PRIu64 ", %" PRId64 ", %u, %u]", i ? ", " : "", at->offset, at->variable, at->address,
           at->addend, at->first, at->bytes);
  }
  printf("]]");
}

static void check_names(const struct description *description) {
  for (uint32_t i = 0; i < description->kernel_count; i++) {
    const struct description_kernel *found = description_kernel(description, description->kernels[i].name);
    if (!found || strcmp(found->name, description->kernels[i].name)) exit(3);
  }
  for (uint32_t i = 0; i < description->variable_count; i++) {
    const struct description_variable *found = description_variable(description, description->variables[i].name);
    if (!found || strcmp(found->name, description->variables[i].name)) exit(3);
  }
  if (description_kernel(description, "no such") || description_variable(description, "")) exit(3);
}

static void show(const struct description *description) {
  printf("[[");
  for (uint32_t i = 0; i < description->kernel_count; i++) {
    if (i) printf(", ");
    show_kernel(&description->kernels[i]);
  }
  printf("], [");
  for (uint32_t i = 0; i < description->variable_count; i++) {
    if (i) printf(", ");
    show_variable(&description->variables[i]);
  }
  printf("]]\n");
}

int main(void) {
  static const uint8_t digest[SG_DIGEST_BYTES];
  char *text = NULL;
  size_t room = 0;
  ssize_t length;
  while ((length = getdelim(&text, &room, 0, stdin)) > 0) {
    struct description *description;
    struct sg_failure why;
    CUresult result = module_describe(text, (size_t)length - 1, digest, &description, &why);
    if (result == CUDA_SUCCESS) {
      check_names(description);
      show(description);
      description_free(description);
    } else {
      printf("%d %s\n", result, why.text);
    }
  }
  free(text);
  return 0;
}
