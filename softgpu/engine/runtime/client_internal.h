/* What the files of the client share. */
#ifndef SOFTGPU_CLIENT_INTERNAL_H
#define SOFTGPU_CLIENT_INTERNAL_H

#include "client.h"

#define SG_ENGINE_HEX 64
#define SG_START_MILLISECONDS 20000
#define SG_ANSWER_MILLISECONDS 120000

/* What the build wrote beside the library, and where that is. */
struct sg_engine_info {
  char version[SG_ENGINE_HEX + 1];
  char python[SG_PATH_BYTES]; /* interpreter of the service */
  char root[SG_PATH_BYTES];   /* folder of the package softgpu */
};

struct sg_service_paths {
  char socket[SG_PATH_BYTES];
  char log[SG_PATH_BYTES];
  char turn[SG_PATH_BYTES]; /* locked by the process that starts the service */
};

__attribute__((format(printf, 2, 3))) void sg_say(struct sg_failure *failure, const char *format, ...);

/* client_paths.c. Those that return int return 0, or -1 with the reason in `failure`. */
const struct sg_engine_info *sg_engine(struct sg_failure *failure); /* null on failure */
int sg_cache_folder(char folder[SG_PATH_BYTES], struct sg_failure *failure);
int sg_service_paths(const char *version, struct sg_service_paths *paths, struct sg_failure *failure);
int sg_is_private(const char *folder); /* exists, is a folder of this user, and nobody else may write to it */

/* client_cache.c */
int sg_object_file(const struct sg_engine_info *engine, const uint8_t digest[SG_DIGEST_BYTES], const char *kernel,
                   const struct sg_options *options, char path[SG_PATH_BYTES]);
int sg_description_file(const struct sg_engine_info *engine, const uint8_t digest[SG_DIGEST_BYTES],
                        char path[SG_PATH_BYTES]);
int sg_unpacked_file(const uint8_t digest[SG_DIGEST_BYTES], enum sg_packing packing, char path[SG_PATH_BYTES]);
/* The content of a file of the cache, or null if it is not there; a damaged file is removed. */
char *sg_sealed_content(const char *path, size_t *bytes);

/* client_start.c: a connected socket, or -1. Starts the service unless it runs. */
int sg_service_connection(const struct sg_engine_info *engine, int milliseconds, enum sg_answer *answer,
                          struct sg_failure *failure);

int64_t sg_milliseconds(void); /* of a clock that only goes forward */

#endif
