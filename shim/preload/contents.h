/* Contents on their way to the reader: by hash, and once the bytes themselves. */
#ifndef TESSERA_CONTENTS_H
#define TESSERA_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

/* The hash of some bytes, which are sent in records of WIRE_DATA unless the reader has them: before the record that
 * names them. It may take as long as a reader who is behind needs. */
void contents_send(const void *bytes, size_t count, uint8_t digest[32]);

#endif
