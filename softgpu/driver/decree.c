/* Cubins by decree: SOFTGPU_DECREE names a folder, in which DIGEST.ptx is the text for the cubin whose SHA-256 is
 * DIGEST. Their machine code is not read: to the program and to whatever stands between, such a kernel is opaque. */
#include "decree.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "driver.h"
#include "files.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

static const char *folder(void) {
  const char *named = getenv("SOFTGPU_DECREE");
  return named && *named ? named : NULL;
}

bool decrees(void) { return folder() != NULL; }

bool is_cubin(const void *image, size_t limit) {
  Elf64_Ehdr header;
  if (limit && limit < sizeof header) return false;
  if (strncmp(image, ELFMAG, SELFMAG)) return false; /* an image may be shorter than that */
  memcpy(&header, image, sizeof header);
  return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_CUDA;
}

static bool reach(uint64_t start, uint64_t size, uint64_t most, uint64_t *end) {
  if (start > most || size > most - start) return false;
  if (start + size > *end) *end = start + size;
  return true;
}

/* The bytes of an ELF file, by what its headers say; 0: they say nonsense. */
static size_t extent(const char *image, size_t limit) {
  const uint64_t most = limit ? limit : (uint64_t)1 << 32;
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  uint64_t end = sizeof header;
  if ((header.e_shnum && header.e_shentsize != sizeof(Elf64_Shdr)) ||
      !reach(header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), most, &end) ||
      !reach(header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize, most, &end))
    return 0;
  for (unsigned n = 0; n < header.e_shnum; n++) {
    Elf64_Shdr section;
    memcpy(&section, image + header.e_shoff + n * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS && !reach(section.sh_offset, section.sh_size, most, &end)) return 0;
  }
  return end;
}

char *decree_text(const void *cubin, size_t limit, size_t *bytes) {
  const char *named = folder();
  size_t size = named && is_cubin(cubin, limit) ? extent(cubin, limit) : 0;
  if (!size) return NULL;
  uint8_t digest[SG_DIGEST_BYTES];
  char digits[2 * SG_DIGEST_BYTES + 1], path[4096], *text = NULL;
  sg_module_digest(cubin, size, digest);
  for (int i = 0; i < SG_DIGEST_BYTES; i++) snprintf(digits + 2 * i, 3, "%02x", digest[i]);
  if (snprintf(path, sizeof path, "%s/%s.ptx", named, digits) >= (int)sizeof path ||
      file_content(path, &text, bytes) != CUDA_SUCCESS)
    complain("a cubin of %zu bytes is not in SOFTGPU_DECREE: no file %s.ptx", size, digits);
  return text;
}
