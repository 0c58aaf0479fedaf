/* Work that has been done, each piece a line of the log. What there is to say of it is said where it is done. */
#include "instrument_work.h"

#include "driver.h"
#include "instrument_settings.h"
#include "sha256.h"

bool instrument_wants_work(void) { return instrument_on && instrument_settings()->work; }

void show_number(FILE *to, const char *name, uint64_t number) {
  fprintf(to, ", \"%s\": %llu", name, (unsigned long long)number);
}

void show_address(FILE *to, const char *name, uint64_t address) {
  fprintf(to, ", \"%s\": ", name);
  line_address(to, address);
}

void show_digest(FILE *to, const char *name, const void *bytes, size_t size) {
  uint8_t digest[SG_SHA256_BYTES];
  sg_sha256(bytes, size, digest);
  fprintf(to, ", \"%s\": ", name);
  line_bytes(to, digest, sizeof digest);
}

void instrument_work(const char *what, const struct execution *execution, CUresult result,
                     void (*show)(const void *given, FILE *to), const void *given) {
  struct line line;
  FILE *to = line_begin(&line);
  if (!to) return;
  const char *name = result_name(result);
  fprintf(to, "{\"work\": \"%s\", \"graph\": %s, \"result\": \"%s\"", what, execution->graph ? "true" : "false",
          name ? name : "");
  show_address(to, "stream", (uint64_t)(uintptr_t)execution->stream);
  show(given, to);
  show_number(to, "end_ns", nanoseconds_now());
  fputs("}\n", to);
  line_end(&line);
}
