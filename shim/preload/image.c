#include "image.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define LARGEST_IMAGE (1ull << 32) /* what says that it is larger is damaged */

enum { FATBIN_MAGIC = (int)0xba55ed50, WRAPPER_MAGIC = 0x466243b1, PTX_ENTRY = 1, LZ4 = 0x2000, ZSTANDARD = 0x8000 };

/* docs/images.md has these. */
struct container {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes; /* behind the header */
};

struct container_entry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint32_t unused[6];
  uint64_t flags;
  uint64_t unused_1[2];
};

struct wrapper {
  uint32_t magic, version;
  const char *container;
};

_Static_assert(sizeof(struct container) == 16 && sizeof(struct container_entry) == 64, "as the files have them");

/* Where a part ends, in `*end` unless that is larger. False: it cannot be. */
static bool reaches(uint64_t offset, uint64_t bytes, uint64_t limit, uint64_t *end) {
  if (offset > limit || bytes > limit - offset) return false;
  if (offset + bytes > *end) *end = offset + bytes;
  return true;
}

/* An ELF file ends with the last of its tables and sections. 0: it is damaged. */
static size_t elf_bytes(const char *data, uint64_t limit) {
  Elf64_Ehdr header;
  Elf64_Shdr section;
  uint64_t end = sizeof header;
  if (limit < sizeof header || data[EI_CLASS] != ELFCLASS64 || data[EI_DATA] != ELFDATA2LSB) return 0;
  memcpy(&header, data, sizeof header);
  if (!reaches(header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize, limit, &end)) return 0;
  if (!header.e_shoff) return (size_t)end;
  if (header.e_shentsize != sizeof section || !reaches(header.e_shoff, sizeof section, limit, &end)) return 0;
  memcpy(&section, data + header.e_shoff, sizeof section);
  uint64_t count = header.e_shnum ? header.e_shnum : section.sh_size; /* more than fit there: the first one says it */
  if (count > LARGEST_IMAGE / sizeof section || !reaches(header.e_shoff, count * sizeof section, limit, &end)) return 0;
  for (uint64_t i = 0; i < count; i++) {
    memcpy(&section, data + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) continue;
    if (!reaches(section.sh_offset, section.sh_size, limit, &end)) return 0;
  }
  return (size_t)end;
}

static size_t container_bytes(const char *data, uint64_t limit) {
  struct container header;
  uint64_t end = 0;
  if (limit < sizeof header) return 0;
  memcpy(&header, data, sizeof header);
  if (header.version != 1 || header.header_bytes < sizeof header) return 0;
  return reaches(header.header_bytes, header.bytes, limit, &end) ? (size_t)end : 0;
}

/* Past blanks and remarks there is `.version`; a zero byte, or the first one that does not fit, ends it. */
static bool is_ptx(const char *at, const char *end) {
  while (at < end && *at) {
    if (*at == ' ' || (*at >= '\t' && *at <= '\r')) {
      at++;
    } else if (*at == '/' && end - at > 1 && at[1] == '/') {
      while (at < end && *at && *at != '\n') at++;
    } else if (*at == '/' && end - at > 1 && at[1] == '*') {
      for (at += 2; at < end && *at && !(*at == '*' && end - at > 1 && at[1] == '/'); at++) {}
      if (at < end && *at) at += 2;
    } else {
      return end - at >= 8 && !strncmp(at, ".version", 8);
    }
  }
  return false;
}

static bool begins(const char *data, uint64_t limit, const void *magic, size_t count) {
  if (limit < count) return false;
  for (size_t i = 0; i < count; i++) /* an image may be a shorter text: it ends at the first byte that differs */
    if (data[i] != ((const char *)magic)[i]) return false;
  return true;
}

struct image image_of(const void *image, size_t known) {
  const char *data = image;
  const uint32_t fatbin = (uint32_t)FATBIN_MAGIC, wrapper = WRAPPER_MAGIC;
  uint64_t limit = known ? known : LARGEST_IMAGE;
  if (limit > UINTPTR_MAX - (uintptr_t)data) limit = UINTPTR_MAX - (uintptr_t)data;
  struct image found = {WIRE_IMAGE_UNKNOWN, data, known};
  if (!data) return found;
  if (begins(data, limit, ELFMAG, SELFMAG)) {
    found.kind = WIRE_IMAGE_CUBIN;
    if (!known) found.bytes = elf_bytes(data, limit);
  } else if (begins(data, limit, &fatbin, sizeof fatbin)) {
    found.kind = WIRE_IMAGE_FATBIN;
    if (!known) found.bytes = container_bytes(data, limit);
  } else if (!known && begins(data, limit, &wrapper, sizeof wrapper)) {
    struct wrapper outer;
    memcpy(&outer, data, sizeof outer);
    bool good = (outer.version == 1 || outer.version == 2) && outer.container &&
                begins(outer.container, sizeof fatbin, &fatbin, sizeof fatbin);
    return good ? image_of(outer.container, 0) : found;
  } else if (is_ptx(data, data + limit)) {
    found.kind = WIRE_IMAGE_PTX;
    if (!known) found.bytes = strnlen(data, limit);
  }
  return found;
}

const char *image_next_text(const struct image *image, size_t *at, size_t *bytes) {
  struct container container;
  struct container_entry entry;
  if (image->kind != WIRE_IMAGE_FATBIN || !container_bytes(image->data, image->bytes)) return NULL;
  memcpy(&container, image->data, sizeof container);
  size_t end = container.header_bytes + (size_t)container.bytes;
  if (!*at) *at = container.header_bytes;
  while (end - *at >= sizeof entry) {
    memcpy(&entry, image->data + *at, sizeof entry);
    size_t left = end - *at;
    if (entry.header_bytes < sizeof entry || entry.header_bytes > left ||
        entry.payload_bytes > left - entry.header_bytes)
      return NULL;
    const char *text = image->data + *at + entry.header_bytes;
    *at += entry.header_bytes + (size_t)entry.payload_bytes;
    *bytes = (size_t)entry.payload_bytes;
    if (entry.kind == PTX_ENTRY && !(entry.flags & (LZ4 | ZSTANDARD))) return text;
  }
  return NULL;
}
