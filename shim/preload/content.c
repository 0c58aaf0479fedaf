#include "content.h"

#include <string.h>

static const uint8_t person[BLAKE2B_PERSON] = "tessera content";

void content_begin(struct content *content, uint64_t total) {
  blake2b_begin(&content->whole, CONTENT_DIGEST, person);
  blake2b_add(&content->whole, &total, sizeof total);
  blake2b_begin(&content->piece, CONTENT_DIGEST, NULL);
  content->left = total;
  content->lanes = total < 2 * CONTENT_PIECE ? 1 : blake2b_lanes();
  content->more = false;
}

static void end_piece(struct content *content) {
  uint8_t digest[CONTENT_DIGEST];
  blake2b_end(&content->piece, digest);
  blake2b_add(&content->whole, digest, sizeof digest);
  blake2b_begin(&content->piece, CONTENT_DIGEST, NULL);
}

void content_add(struct content *content, const void *data, size_t bytes) {
  const uint8_t *at = data;
  if (bytes > content->left) content->more = true;
  if (content->more) return;
  content->left -= bytes;
  while (bytes) {
    size_t taken;
    if (bytes >= CONTENT_PIECE && !content->piece.bytes) {
      uint8_t digests[CONTENT_DIGEST * BLAKE2B_MOST_LANES];
      unsigned pieces = blake2b_side_by_side(at, CONTENT_PIECE, bytes / CONTENT_PIECE, content->lanes, digests);
      blake2b_add(&content->whole, digests, (size_t)pieces * CONTENT_DIGEST);
      taken = (size_t)pieces * CONTENT_PIECE;
    } else {
      size_t missing = CONTENT_PIECE - content->piece.bytes;
      taken = bytes < missing ? bytes : missing;
      blake2b_add(&content->piece, at, taken);
      if (taken == missing) end_piece(content);
    }
    at += taken;
    bytes -= taken;
  }
}

bool content_end(struct content *content, uint8_t digest[CONTENT_DIGEST]) {
  if (content->left || content->more) return false;
  if (content->piece.bytes) end_piece(content);
  blake2b_end(&content->whole, digest);
  return true;
}

void content_of(const void *data, size_t bytes, uint8_t digest[CONTENT_DIGEST]) {
  struct content content;
  content_begin(&content, bytes);
  content_add(&content, data, bytes);
  content_end(&content, digest);
}
