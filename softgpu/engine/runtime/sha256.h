/* SHA-256 (FIPS 180-4). */
#ifndef SOFTGPU_SHA256_H
#define SOFTGPU_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SG_SHA256_BYTES 32

void sg_sha256(const void *data, size_t bytes, uint8_t digest[SG_SHA256_BYTES]);

#endif
