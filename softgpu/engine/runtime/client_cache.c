/* The cache of compiled kernels, as softgpu/engine/cache.py keeps it: keys, and files that are whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client_internal.h"
#include "sha256.h"

#define TRAILER_BYTES 48 /* SHA-256 of the content, its length, a mark */
#define TOUCH_SECONDS 60

static const char mark[8] = {'s', 'o', 'f', 't', 'g', 'p', 'u', 1};

void sg_module_digest(const void *ptx, size_t bytes, uint8_t digest[SG_DIGEST_BYTES]) { sg_sha256(ptx, bytes, digest); }

static void hexadecimal(const uint8_t digest[SG_DIGEST_BYTES], char text[2 * SG_DIGEST_BYTES + 1]) {
  for (int i = 0; i < SG_DIGEST_BYTES; i++)
    snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* The file of a key's text (freed here) in the cache's folder; -1 without memory or folder. */
static int file_of(char *key_text, int length, const char *ending, char path[SG_PATH_BYTES]) {
  char folder[SG_PATH_BYTES], name[2 * SG_DIGEST_BYTES + 1];
  uint8_t key[SG_DIGEST_BYTES];
  struct sg_failure unused;
  if (length < 0)
    return -1;
  sg_sha256(key_text, (size_t)length, key);
  free(key_text);
  hexadecimal(key, name);
  if (sg_cache_folder(folder, &unused))
    return -1;
  return snprintf(path, SG_PATH_BYTES, "%s/%s%s", folder, name, ending) < SG_PATH_BYTES ? 0 : -1;
}

int sg_object_file(const struct sg_engine_info *engine, const uint8_t digest[SG_DIGEST_BYTES], const char *kernel,
                   const struct sg_options *options, char path[SG_PATH_BYTES]) {
  const uint32_t *block = options->block;
  char ptx[2 * SG_DIGEST_BYTES + 1], extents[40] = "any", *text;
  const char *level = sg_target_level();
  if (!level)
    return -1;
  if (block[0])
    snprintf(extents, sizeof extents, "%ux%ux%u", block[0], block[1], block[2]);
  hexadecimal(digest, ptx);
  const int length = asprintf(&text,
                              "softgpu 1 object\nengine %s\nabi %d\ntarget %s\nptx %s\n"
                              "block=%s counts=%d logs=%d rounding=%u\nkernel %s",
                              engine->version, SG_ABI_VERSION, level, ptx, extents, !!(options->flags & SG_COUNTS),
                              !!(options->flags & SG_LOGS), options->rounding, kernel);
  return file_of(text, length, ".so", path);
}

int sg_description_file(const struct sg_engine_info *engine, const uint8_t digest[SG_DIGEST_BYTES],
                        char path[SG_PATH_BYTES]) {
  char ptx[2 * SG_DIGEST_BYTES + 1], *text;
  hexadecimal(digest, ptx);
  const int length = asprintf(&text, "softgpu 1 description\nengine %s\nabi %d\nptx %s\n", engine->version,
                              SG_ABI_VERSION, ptx);
  return file_of(text, length, ".json", path);
}

int sg_unpacked_file(const uint8_t digest[SG_DIGEST_BYTES], enum sg_packing packing, char path[SG_PATH_BYTES]) {
  char packed[2 * SG_DIGEST_BYTES + 1], *text;
  hexadecimal(digest, packed);
  const int length = asprintf(&text, "softgpu 1 unpacked\npacking %d\npacked %s\n", packing, packed);
  return file_of(text, length, ".ptx", path);
}

static int read_all(int file, char *data, size_t bytes) {
  while (bytes) {
    const ssize_t got = read(file, data, bytes);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return -1;
    data += got;
    bytes -= (size_t)got;
  }
  return 0;
}

/* Whether the bytes of a file are content and the trailer that belongs to it. */
static int is_whole(const char *data, size_t size) {
  uint8_t digest[SG_DIGEST_BYTES];
  uint64_t length;
  if (size < TRAILER_BYTES)
    return 0;
  const char *trailer = data + size - TRAILER_BYTES;
  memcpy(&length, trailer + SG_DIGEST_BYTES, sizeof length);
  if (memcmp(trailer + SG_DIGEST_BYTES + sizeof length, mark, sizeof mark) || length != size - TRAILER_BYTES)
    return 0;
  sg_sha256(data, size - TRAILER_BYTES, digest);
  return !memcmp(digest, trailer, SG_DIGEST_BYTES);
}

char *sg_sealed_content(const char *path, size_t *bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat found;
  char *data = 0;
  if (file < 0)
    return 0;
  if (!fstat(file, &found) && S_ISREG(found.st_mode) && found.st_uid == geteuid() && !(found.st_mode & 022)) {
    const size_t size = (size_t)found.st_size;
    data = malloc(size + 1);
    if (data && !read_all(file, data, size)) {
      if (is_whole(data, size)) {
        *bytes = size - TRAILER_BYTES;
        data[*bytes] = 0;
        if (time(0) - found.st_mtime > TOUCH_SECONDS)
          futimens(file, 0); /* used lately: stays longest; without the right to say so it may go */
        close(file);
        return data;
      }
      unlink(path);
    }
  }
  free(data);
  close(file);
  return 0;
}

int sg_cached_object(const uint8_t digest[SG_DIGEST_BYTES], const char *kernel, const struct sg_options *options,
                     char path[SG_PATH_BYTES]) {
  struct sg_failure unused;
  char folder[SG_PATH_BYTES];
  size_t bytes;
  const struct sg_engine_info *engine = sg_engine(&unused);
  if (!engine || sg_object_file(engine, digest, kernel, options, path) || sg_cache_folder(folder, &unused) ||
      !sg_is_private(folder))
    return 0;
  char *content = sg_sealed_content(path, &bytes);
  free(content);
  return content != 0;
}
