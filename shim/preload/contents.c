#include "contents.h"

#include <string.h>

#include "content.h"
#include "session.h"

/* The hash itself tells contents apart: half of it is the key of the table. */
static void key_of(const uint8_t *digest, uint64_t key[2]) { memcpy(key, digest, 2 * sizeof *key); }

static bool send_piece(const char *bytes, size_t count, size_t offset, size_t total, const uint8_t *digest) {
  size_t whole = sizeof(struct wire_data) + padded(count);
  bool room = ring_room(whole);
  struct wire_data *record = record_begin(WIRE_DATA, 0, whole); /* without room it is counted as lost */
  memcpy(record->content, digest, sizeof record->content);
  record->total = total;
  record->offset = offset;
  record->bytes = (uint32_t)count;
  record->unused = 0;
  put_bytes(record + 1, bytes + offset, count);
  record_end(record);
  return room;
}

void contents_send(const void *bytes, size_t count, uint8_t digest[32]) {
  content_of(bytes, count, digest);
  uint64_t key[2];
  key_of(digest, key);
  if (table_find(&session->sent, key[0], key[1])) return;
  size_t offset = 0;
  do {
    size_t piece = count - offset < WIRE_PIECE_BYTES ? count - offset : WIRE_PIECE_BYTES;
    if (!send_piece(bytes, piece, offset, count, digest)) return; /* another time */
    offset += piece;
  } while (offset < count);
  table_add(&session->sent, key[0], key[1], sizeof(struct entry), NULL, NULL);
}
