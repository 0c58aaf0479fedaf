/* The roofline: of all that work needs, what takes longest is how long it takes. */
#include "cost.h"

#include "allocations.h"
#include "clock.h"
#include "driver.h"

enum {
  SPECIAL = 16,    /* results of an SM in a clock; the same in all capabilities (CUDA C++ Programming Guide) */
  ISSUED = 128,    /* instructions of threads: four schedulers, 32 threads each */
  SHARED = 128,    /* bytes of shared memory: 32 banks of 4 */
  FETCHED = 64     /* bytes between an SM and the L2 cache */
};

static const double HOST_COPY = 10e9; /* bytes a second that a core of the host copies */

/* Of a kernel: different bytes that it accessed, by where they lie. */
struct traffic {
  double own, host, peers[MOST_DEVICES];
};

static void add_range(struct traffic *traffic, CUdevice device, const struct sg_range *range) {
  for (uint64_t at = range->start, end; at < range->end; at = end) {
    const struct allocation *found = allocation_with(at, 1);
    end = range->end;
    if (found && found->start + found->size < end) end = found->start + found->size;
    double bytes = (double)(end - at);
    if (!found || (on_device(found) && found->device == device)) /* one that was freed meanwhile counts as well */
      traffic->own += bytes;
    else if (on_device(found))
      traffic->peers[found->device] += bytes;
    else
      traffic->host += bytes;
  }
}

static struct traffic traffic_of(CUdevice device, const struct sg_result *result) {
  struct traffic traffic = {0};
  allocations_read();
  for (uint64_t n = 0; n < result->read.count; n++) add_range(&traffic, device, &result->read.items[n]);
  for (uint64_t n = 0; n < result->written.count; n++) add_range(&traffic, device, &result->written.items[n]);
  for (uint64_t n = 0; n < result->atomic.count; n++) /* read and written */
    for (int way = 0; way < 2; way++) add_range(&traffic, device, &result->atomic.items[n]);
  allocations_release();
  return traffic;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Clocks of an SM if `sms` of them share the work. */
static double clocks(const struct card *card, double sms, const uint64_t *counts) {
  double issued = 0, most = 0;
  for (int class = 0; class < SG_GLOBAL_READ; class++)
    if (class != SG_MOVE) issued += (double)counts[class];
  const double work[][2] = {
      {issued, ISSUED},
      {(double)counts[SG_SINGLE], card->fp32},
      {(double)counts[SG_HALF], card->fp16 / 2.0}, /* an instruction has two */
      {(double)counts[SG_DOUBLE], card->fp64},
      {(double)counts[SG_INTEGER], card->int32},
      {(double)counts[SG_CONVERT], card->conversions},
      {(double)counts[SG_SPECIAL], SPECIAL},
      {(double)(counts[SG_SHARED_READ] + counts[SG_SHARED_WRITTEN]), SHARED},
  };
  for (size_t n = 0; n < sizeof work / sizeof *work; n++) most = larger(most, work[n][0] / work[n][1]);
  return most / sms;
}

static double memory_seconds(CUdevice device, double sms, const struct traffic *traffic) {
  const struct card *card = device_at(device)->card;
  double port = sms * FETCHED * card->clock * 1e3, own = card->bandwidth * 1e6;
  double seconds = larger(traffic->own / (own < port ? own : port), traffic->host / (card->host_bandwidth * 1e6));
  for (int n = 0; n < device_count(); n++)
    if (traffic->peers[n] > 0) seconds = larger(seconds, traffic->peers[n] / device_connection(device, n)->bandwidth);
  return seconds;
}

void cost_kernel(CUdevice device, uint64_t blocks, const struct sg_result *result) {
  if (!clock_on()) return;
  const struct card *card = device_at(device)->card;
  double sms = blocks < (uint64_t)card->sms ? (double)blocks : card->sms;
  struct traffic traffic = traffic_of(device, result);
  double products = card->tensor * 1e9 / 2 * sms / card->sms; /* in a second */
  double seconds = clocks(card, sms, result->counts) / (card->clock * 1e3);
  seconds = larger(seconds, (double)result->counts[SG_PRODUCTS] / products);
  seconds = larger(seconds, memory_seconds(device, sms, &traffic));
  clock_take(&(struct taken){device, PART_DEVICE}, 1, seconds * 1e9);
}

/* Within a device each byte is read and written. */
static double copy_rate(int to, int from) {
  int one = to == OF_HOST ? from : to;
  if (one == OF_HOST) return HOST_COPY;
  if (to == from) return device_at(to)->card->bandwidth * 1e6 / 2;
  if (to == OF_HOST || from == OF_HOST) return device_at(one)->card->host_bandwidth * 1e6;
  return device_connection(from, to)->bandwidth;
}

void cost_copy(int to, int from, size_t bytes) {
  if (!clock_on()) return;
  double seconds = (double)bytes / copy_rate(to, from);
  struct taken parts[2];
  size_t count = 0;
  if (to == from) {
    if (to != OF_HOST) parts[count++] = (struct taken){to, PART_DEVICE};
  } else {
    if (to != OF_HOST) parts[count++] = (struct taken){to, PART_IN};
    if (from != OF_HOST) parts[count++] = (struct taken){from, PART_OUT};
  }
  if (count == 2) seconds += device_connection(from, to)->latency;
  clock_take(parts, count, seconds * 1e9);
}

void cost_fill(int where, size_t bytes) {
  if (!clock_on()) return;
  double rate = where == OF_HOST ? HOST_COPY : device_at(where)->card->bandwidth * 1e6;
  clock_take(&(struct taken){where, PART_DEVICE}, where != OF_HOST, (double)bytes / rate * 1e9);
}
