/* Occupancy. Registers do not limit it, as there are none here. */
#include "occupancy.h"

#include "driver.h"

enum { WARP = 32, SHARED_GRAIN = 128, RESERVED_SHARED = 1024 };

int occupancy(const struct card *card, int shared, int threads) {
  int warps = (threads + WARP - 1) / WARP;
  int reserved = card->major < 8 ? 0 : RESERVED_SHARED;
  int bytes = (shared + reserved + SHARED_GRAIN - 1) / SHARED_GRAIN * SHARED_GRAIN;
  int by_threads = card->threads_per_sm / (warps * WARP);
  int by_shared = bytes ? card->shared_per_sm / bytes : card->blocks_per_sm;
  int least = by_threads < by_shared ? by_threads : by_shared;
  return least < card->blocks_per_sm ? least : card->blocks_per_sm;
}
