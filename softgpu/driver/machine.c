/* The machine: which devices there are, from SOFTGPU_DEVICES. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "driver.h"
#include "fleet.h"
#include "share.h"
#include "strict.h"

static const char DEFAULT[] = "A100-80G,L40S";

static struct fleet fleet;
static bool rounding; /* whether cards differ in it */

int device_count(void) { return fleet.count; }

const struct device *device_at(CUdevice ordinal) {
  return ordinal >= 0 && ordinal < fleet.count ? &fleet.devices[ordinal] : NULL;
}

const struct connection *device_connection(CUdevice first, CUdevice second) { return &fleet.links[first][second]; }

/* With SOFTGPU_ROUNDING=1 cards before capability 8.9 and those from it on differ in the last bits, as real ones do. */
uint32_t device_rounding(CUdevice ordinal) {
  const struct card *card = fleet.devices[ordinal].card;
  return rounding && 10 * card->major + card->minor >= 89;
}

/* Told apart by their place; the same in every process of the machine. */
static CUuuid uuid_of(int ordinal) {
  CUuuid id = {.bytes = {'s', 'o', 'f', 't', 'g', 'p', 0x40, 'u', (char)0x80, 0, 0, 0, 0, 0, 0, (char)ordinal}};
  return id;
}

/* FNV-1a. */
static uint64_t digest(const void *bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char *at = bytes; size--; at++) hash = (hash ^ *at) * 0x100000001b3;
  return hash;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *format, ...) {
  size_t length = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, size - length, format, arguments);
  va_end(arguments);
}

/* What all processes of a machine must agree on. Links are too many to be told. */
static void describe(char *text, size_t size) {
  *text = 0;
  for (int n = 0; n < fleet.count; n++) {
    const struct device *device = &fleet.devices[n];
    append(text, size, "%s%s", n ? "," : "", device->card->name);
    if (device->memory != device->card->memory) append(text, size, ":%zu MiB", device->memory >> 20);
  }
  if (clock_on()) append(text, size, " at the clock modelled:%g", clock_dilation());
  if (!fleet.said) return;
  uint64_t links = 0;
  for (int a = 0; a < fleet.count; a++)
    for (int b = 0; b < fleet.count; b++) {
      double told[3] = {fleet.links[a][b].bandwidth, fleet.links[a][b].latency, fleet.links[a][b].peer};
      links = links * 31 + digest(told, sizeof told);
    }
  append(text, size, " with the links %016llx", (unsigned long long)links);
}

/* The fleet in a file, in one line, to be freed; the compile service reads it. NULL, after a line on standard error. */
static char *from_file(const char *name) {
  char path[SG_PATH_BYTES], *text;
  struct sg_failure failure;
  size_t length = 0;
  if (*name != '/' && getcwd(path, sizeof path - 1)) {
    length = strlen(path);
    path[length++] = '/';
  }
  if ((*name != '/' && !length) || length + strlen(name) >= sizeof path) {
    complain("SOFTGPU_DEVICES=@%.100s: the path of the file is too long", name);
    return NULL;
  }
  strcpy(path + length, name);
  if (sg_fleet(path, &text, &failure) == SG_ANSWERED) return text;
  complain("SOFTGPU_DEVICES=@%.100s: %.300s", name, failure.text);
  return NULL;
}

bool flag_variable(const char *name, bool *on) {
  const char *text = getenv(name);
  *on = text && !strcmp(text, "1");
  if (!text || !*text || !strcmp(text, "0") || *on) return true;
  complain("%s=%.40s is neither 0 nor 1", name, text);
  return false;
}

bool machine_begin(void) {
  const char *named = getenv("SOFTGPU_DEVICES");
  char *read = NULL;
  if (!flag_variable("SOFTGPU_ROUNDING", &rounding) || !strict_begin() || !clock_begin()) return false;
  if (named && *named == '@' && !(read = from_file(named + 1))) return false;
  bool good = fleet_parse(read ? read : named && *named ? named : DEFAULT, &fleet);
  free(read);
  if (!good) return false;
  for (int n = 0; n < fleet.count; n++) fleet.devices[n].uuid = uuid_of(n);
  char told[4096];
  describe(told, sizeof told);
  return share_begin(told);
}
