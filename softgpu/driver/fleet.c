/* The text of a fleet, in one line; tessera/fleet.py reads it by the same rules, and files too.
 *
 * GPUs stand between commas, links behind semicolons; each is a list of words between colons, KEY=VALUE, of which a
 * GPU's first is its card alone. Spaces around words, keys and values do not matter. */
#include "fleet.h"

#include <float.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A piece of the text, without the spaces around it. */
struct piece {
  const char *at;
  size_t length;
};

#define SHOW(piece) ((piece).length < 60 ? (int)(piece).length : 60), (piece).at

/* The text, and what is being read: for messages. */
struct reader {
  const char *text;
  struct fleet *fleet;
  const char *kind;
  int number;
  locale_t plain; /* numbers have a point in it */
};

__attribute__((format(printf, 2, 3))) static bool wrong(const struct reader *reader, const char *format, ...) {
  char what[300];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  complain("SOFTGPU_DEVICES=%.100s: %s %d: %s", reader->text, reader->kind, reader->number, what);
  return false;
}

static bool is_space(char c) { return c && strchr(" \t\n\r\v\f", c); }

static struct piece trimmed(const char *at, const char *end) {
  while (at < end && is_space(*at)) at++;
  while (at < end && is_space(end[-1])) end--;
  return (struct piece){at, (size_t)(end - at)};
}

/* The next piece of one, which ends before `separator`, and the rest behind that; false when nothing is left. */
static bool next(struct piece *rest, char separator, struct piece *piece) {
  if (!rest->at) return false;
  const char *end = rest->at + rest->length, *found = memchr(rest->at, separator, rest->length);
  *piece = trimmed(rest->at, found ? found : end);
  *rest = found ? (struct piece){found + 1, (size_t)(end - found - 1)} : (struct piece){NULL, 0};
  return true;
}

static bool is(struct piece piece, const char *text) {
  return strlen(text) == piece.length && !memcmp(piece.at, text, piece.length);
}

/* Values by key; a piece at NULL is one that is not there. */
static bool values(const struct reader *reader, struct piece rest, const char *const *keys, struct piece *found,
                   const char *listed) {
  struct piece word, key, value;
  for (size_t n = 0; keys[n]; n++) found[n].at = NULL;
  while (next(&rest, ':', &word)) {
    const char *equals = memchr(word.at, '=', word.length);
    if (!equals) return wrong(reader, "'%.*s' is no KEY=VALUE; keys are %s", SHOW(word), listed);
    key = trimmed(word.at, equals);
    value = trimmed(equals + 1, word.at + word.length);
    size_t n = 0;
    while (keys[n] && !is(key, keys[n])) n++;
    if (!keys[n]) return wrong(reader, "'%.*s' is not known; there are %s", SHOW(key), listed);
    if (found[n].at) return wrong(reader, "%s is there twice", keys[n]);
    found[n] = value;
  }
  return true;
}

/* A positive number, or what it was when there is none. */
static bool number(const struct reader *reader, const char *key, struct piece piece, double *value) {
  char text[64], *end = text;
  if (!piece.at) return true;
  double read = 0;
  if (piece.length && piece.length < sizeof text) {
    memcpy(text, piece.at, piece.length);
    text[piece.length] = 0;
    if (strspn(text, "0123456789.eE+-") == piece.length) read = strtod_l(text, &end, reader->plain);
  }
  if (end == text || *end || !(read > 0 && read <= DBL_MAX))
    return wrong(reader, "%s=%.*s must be a number above 0", key, SHOW(piece));
  *value = read;
  return true;
}

static const struct card *card_named(struct piece piece) {
  for (unsigned i = 0; i < card_name_count; i++)
    if (strlen(card_names[i].name) == piece.length && !strncasecmp(card_names[i].name, piece.at, piece.length))
      return &cards[card_names[i].card];
  return NULL;
}

static bool good_name(struct piece name) {
  for (size_t n = 0; n < name.length; n++)
    if (strchr(",;:=\x7f", name.at[n]) || (unsigned char)name.at[n] < 0x20) return false;
  return name.length > 0 && name.length <= LONGEST_NAME;
}

static bool read_gpu(struct reader *reader, struct piece rest) {
  enum { MEMORY, NAME, PRICE, KEYS };
  static const char *const keys[KEYS + 1] = {"memory_gib", "name", "price_usd_h"};
  struct piece card, found[KEYS];
  struct fleet *fleet = reader->fleet;
  if (fleet->count == MOST_DEVICES) {
    complain("SOFTGPU_DEVICES names more than %d devices", MOST_DEVICES);
    return false;
  }
  struct device *device = &fleet->devices[fleet->count++];
  next(&rest, ':', &card);
  device->card = card_named(card);
  if (!device->card)
    return wrong(reader, "no card is named '%.*s'; docs/fleets.md has the list", SHOW(card));
  if (!values(reader, rest, keys, found, "memory_gib, name, price_usd_h")) return false;
  double gibibytes = (double)(device->card->memory >> 30), price = 0;
  if (!number(reader, keys[MEMORY], found[MEMORY], &gibibytes) || !number(reader, keys[PRICE], found[PRICE], &price))
    return false;
  if (gibibytes * 1024 >= (double)(device->card->memory >> 20) + 1)
    return wrong(reader, "memory_gib=%.*s; a %s has %llu", SHOW(found[MEMORY]), device->card->name,
                 device->card->memory >> 30);
  device->memory = (size_t)(gibibytes * 1024) << 20;
  if (!device->memory) return wrong(reader, "memory_gib=%.*s: there must be a MiB at least", SHOW(found[MEMORY]));
  if (!found[NAME].at) return true;
  if (!good_name(found[NAME]))
    return wrong(reader, "name=%.*s must be 1 to %d bytes without any of , ; : = in it", SHOW(found[NAME]),
                 LONGEST_NAME);
  memcpy(device->name, found[NAME].at, found[NAME].length);
  return true;
}

/* Those without a name bear that of their card, numbered where several do. */
static void give_names(struct fleet *fleet) {
  bool unnamed[MOST_DEVICES];
  for (int n = 0; n < fleet->count; n++) unnamed[n] = !fleet->devices[n].name[0];
  for (int n = 0; n < fleet->count; n++) {
    struct device *device = &fleet->devices[n];
    int before = 0, all = 0;
    for (int m = 0; m < fleet->count; m++)
      if (unnamed[m] && fleet->devices[m].card == device->card) {
        all++;
        before += m < n;
      }
    if (unnamed[n] && all > 1) snprintf(device->name, sizeof device->name, "%s-%d", device->card->name, before);
    if (unnamed[n] && all == 1) snprintf(device->name, sizeof device->name, "%s", device->card->name);
  }
}

static int device_named(const struct fleet *fleet, struct piece name) {
  for (int n = 0; n < fleet->count; n++)
    if (is(name, fleet->devices[n].name)) return n;
  return -1;
}

static bool names_differ(struct reader *reader) {
  const struct fleet *fleet = reader->fleet;
  for (int n = 0; n < fleet->count; n++) {
    const char *name = fleet->devices[n].name;
    int first = device_named(fleet, (struct piece){name, strlen(name)});
    reader->number = n;
    if (first != n) return wrong(reader, "it is named %s, as device %d is", name, first);
  }
  return true;
}

/* Through the host, at the slower one's pace. */
static void link_through_host(struct fleet *fleet) {
  for (int a = 0; a < fleet->count; a++)
    for (int b = 0; b < fleet->count; b++) {
      int one = fleet->devices[a].card->host_bandwidth, other = fleet->devices[b].card->host_bandwidth;
      fleet->links[a][b] = (struct connection){.bandwidth = 1e6 * (one < other ? one : other)};
    }
}

static bool read_link(struct reader *reader, struct piece rest, bool (*known)[MOST_DEVICES]) {
  enum { BANDWIDTH, FROM, LATENCY, PEER, TO, KEYS };
  static const char *const keys[KEYS + 1] = {"bandwidth_gb_s", "from", "latency_us", "peer", "to"};
  struct piece found[KEYS];
  struct fleet *fleet = reader->fleet;
  int ends[2];
  if (!values(reader, rest, keys, found, "bandwidth_gb_s, from, latency_us, peer, to")) return false;
  for (int n = 0; n < 2; n++) {
    int key = n ? TO : FROM;
    if (!found[key].at) return wrong(reader, "%s is missing", keys[key]);
    ends[n] = device_named(fleet, found[key]);
    if (ends[n] < 0) return wrong(reader, "%s=%.*s: no device has that name", keys[key], SHOW(found[key]));
  }
  if (ends[0] == ends[1]) return wrong(reader, "it begins and ends at %.*s", SHOW(found[FROM]));
  if (known[ends[0]][ends[1]])
    return wrong(reader, "%.*s and %.*s have one already", SHOW(found[FROM]), SHOW(found[TO]));
  double gigabytes = 0, microseconds = 0;
  if (!found[BANDWIDTH].at) return wrong(reader, "bandwidth_gb_s is missing");
  if (!number(reader, keys[BANDWIDTH], found[BANDWIDTH], &gigabytes) ||
      !number(reader, keys[LATENCY], found[LATENCY], &microseconds))
    return false;
  if (found[PEER].at && !is(found[PEER], "true") && !is(found[PEER], "false"))
    return wrong(reader, "peer=%.*s must be true or false", SHOW(found[PEER]));
  struct connection link = {.bandwidth = gigabytes * 1e9, .latency = microseconds * 1e-6,
                      .peer = found[PEER].at && is(found[PEER], "true")};
  for (int n = 0; n < 2; n++) {
    fleet->links[ends[n]][ends[!n]] = link;
    known[ends[n]][ends[!n]] = true;
  }
  fleet->said++;
  return true;
}

static bool read_fleet(struct reader *reader) {
  bool known[MOST_DEVICES][MOST_DEVICES] = {{false}};
  struct piece rest = trimmed(reader->text, reader->text + strlen(reader->text)), gpus, piece;
  reader->kind = "device";
  next(&rest, ';', &gpus);
  for (; next(&gpus, ',', &piece); reader->number++)
    if (!read_gpu(reader, piece)) return false;
  give_names(reader->fleet);
  if (!names_differ(reader)) return false;
  link_through_host(reader->fleet);
  reader->kind = "link";
  for (reader->number = 0; next(&rest, ';', &piece); reader->number++)
    if (!read_link(reader, piece, known)) return false;
  return true;
}

bool fleet_parse(const char *text, struct fleet *fleet) {
  struct reader reader = {.text = text, .fleet = fleet, .plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
  memset(fleet, 0, sizeof *fleet);
  if (!reader.plain) {
    complain("no memory for SOFTGPU_DEVICES");
    return false;
  }
  bool good = read_fleet(&reader);
  freelocale(reader.plain);
  return good;
}
