/* The driver links images to one. */
#include <string.h>

#include "contents.h"
#include "content.h"
#include "doors.h"
#include "file.h"
#include "hooks.h"
#include "things.h"

enum { LONGEST_NAME = 4096 };

static void input(CUlinkState state, CUjitInputType type, const void *data, size_t bytes, const char *name,
                  unsigned function) {
  uint8_t content[32] = {0};
  size_t length = name ? strnlen(name, LONGEST_NAME) : 0;
  if (!data) bytes = 0;
  if (bytes) contents_send(data, bytes, content);
  struct wire_link_input *record = record_begin(WIRE_LINK_INPUT, function, sizeof *record + padded(length));
  record->state = number_of(state);
  record->type = type;
  record->name_bytes = (uint32_t)length;
  record->bytes = bytes;
  memcpy(record->content, content, sizeof record->content);
  put_bytes(record + 1, name, length);
  record_end(record);
}

/* After the driver has taken it: the bytes are the program's, and there until it returns. */
#define ADD_DATA(symbol)                                                                                       \
  if (!recording()) return real.symbol(state, type, data, size, name, count, options, values);                 \
  CUresult result = DRIVER(real.symbol(state, type, data, size, name, count, options, values));                \
  if (result == CUDA_SUCCESS) input(state, type, data, size, name, NUMBER_##symbol);                           \
  return result

CUresult hook_cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                            unsigned count, CUjit_option *options, void **values) {
  ADD_DATA(cuLinkAddData);
}

CUresult hook_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                               unsigned count, CUjit_option *options, void **values) {
  ADD_DATA(cuLinkAddData_v2);
}

static void file_input(CUlinkState state, CUjitInputType type, const char *path, unsigned function) {
  struct file file;
  file_read(path, &file);
  input(state, type, file.data, file.bytes, path, function);
  file_give(&file);
}

#define ADD_FILE(symbol)                                                                          \
  if (!recording()) return real.symbol(state, type, path, count, options, values);                \
  CUresult result = DRIVER(real.symbol(state, type, path, count, options, values));               \
  if (result == CUDA_SUCCESS) file_input(state, type, path, NUMBER_##symbol);                     \
  return result

CUresult hook_cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned count,
                            CUjit_option *options, void **values) {
  ADD_FILE(cuLinkAddFile);
}

CUresult hook_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned count,
                               CUjit_option *options, void **values) {
  ADD_FILE(cuLinkAddFile_v2);
}

/* The bytes follow when a program loads them. */
CUresult hook_cuLinkComplete(CUlinkState state, void **image, size_t *size) {
  if (!recording()) return real.cuLinkComplete(state, image, size);
  CUresult result = DRIVER(real.cuLinkComplete(state, image, size));
  if (result != CUDA_SUCCESS || !image || !*image || !size) return result;
  struct wire_link_output record = {.state = number_of(state), .bytes = *size};
  content_of(*image, *size, record.content);
  record_thing(WIRE_LINK_OUTPUT, NUMBER_cuLinkComplete, 0, &record, sizeof record);
  return result;
}

CUresult hook_cuLinkDestroy(CUlinkState state) {
  if (!state || !recording()) return real.cuLinkDestroy(state);
  struct wire_end what = {.kind = WIRE_LINK_INPUT, .handle = number_of(state)};
  struct ending ending = ending_begin(NUMBER_cuLinkDestroy, what);
  return ending_done(&ending, real.cuLinkDestroy(state));
}
