/* The layout of fatbins, as nvcc 13.0 writes it with each of its modes of compression. Numbers are little-endian;
 * whatever a header says is compared with what there is before it is used. */
#include "fatbin.h"

#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "description.h"
#include "driver.h"

static const char MAGIC[] = "\x50\xed\x55\xba", WRAPPER[] = "\xb1\x43\x62\x46";

struct container {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes; /* behind the header */
};

struct entry {
  uint16_t kind, version;
  uint32_t header_bytes; /* at least those of this structure; names and options follow it */
  uint64_t payload_bytes; /* behind the header, with padding */
  uint32_t packed_bytes, options;
  uint16_t minor, major; /* of PTX */
  uint32_t target;
  uint32_t name, name_bytes;
  uint64_t flags;
  uint64_t reserved;
  uint64_t unpacked_bytes;
};

_Static_assert(sizeof(struct container) == 16 && sizeof(struct entry) == 64, "as the files have them");

enum { LZ4 = 0x2000, ZSTANDARD = 0x8000, ALONE = 0x100000, FAMILY = 0x200000 }; /* flags */

/* Images may be shorter than a magic number; these stop at the first byte that differs. */
bool is_fatbin(const void *image) { return !strncmp(image, MAGIC, 4); }
bool is_fatbin_wrapper(const void *image) { return !strncmp(image, WRAPPER, 4); }

bool fatbin_begin(struct fatbin *walk, const void *image, size_t limit) {
  struct container header;
  if ((limit && limit < sizeof header) || !is_fatbin(image)) return false;
  memcpy(&header, image, sizeof header);
  uint64_t most = limit ? limit : UINTPTR_MAX - (uintptr_t)image;
  if (header.version != 1 || header.header_bytes < sizeof header || header.header_bytes > most ||
      header.bytes > most - header.header_bytes)
    return false;
  walk->at = (const uint8_t *)image + header.header_bytes;
  walk->end = walk->at + header.bytes;
  return true;
}

int fatbin_next(struct fatbin *walk, struct fatbin_entry *entry) {
  struct entry header;
  size_t left = (size_t)(walk->end - walk->at);
  if (!left) return 0;
  if (left < sizeof header) return -1;
  memcpy(&header, walk->at, sizeof header);
  if (header.header_bytes < sizeof header || header.header_bytes > left ||
      header.payload_bytes > left - header.header_bytes)
    return -1;
  bool packed = header.flags & (LZ4 | ZSTANDARD);
  if (packed && header.packed_bytes > header.payload_bytes) return -1;
  *entry = (struct fatbin_entry){
      .kind = header.kind,
      .target = {(int)(header.target & 0xffff), header.flags & ALONE ? 'a' : header.flags & FAMILY ? 'f' : 0},
      .data = walk->at + header.header_bytes,
      .data_bytes = packed ? header.packed_bytes : header.payload_bytes,
      .unpacked_bytes = packed ? header.unpacked_bytes : header.payload_bytes,
      .packing = header.flags & ZSTANDARD ? SG_ZSTANDARD : packed ? SG_LZ4 : 0,
  };
  walk->at += header.header_bytes + header.payload_bytes;
  return 1;
}

CUresult fatbin_content(const struct fatbin_entry *entry, char **content, size_t *bytes) {
  struct sg_failure failure;
  *bytes = entry->unpacked_bytes;
  if (!entry->packing) {
    *content = malloc(*bytes + 1);
    if (!*content) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(*content, entry->data, *bytes);
    (*content)[*bytes] = 0;
    return CUDA_SUCCESS;
  }
  enum sg_answer answer =
      sg_unpack((enum sg_packing)entry->packing, entry->data, entry->data_bytes, *bytes, content, &failure);
  if (answer == SG_ANSWERED) return CUDA_SUCCESS;
  complain("%s", failure.text);
  return answer == SG_INVALID ? CUDA_ERROR_INVALID_IMAGE : answer_result(answer);
}
