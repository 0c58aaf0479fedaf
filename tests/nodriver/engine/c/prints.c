/* printf and assertions of the device. */
#include <locale.h>

#include "check.h"

static const struct sg_site sites[] = {{"call vprintf", 70, 0, 0, 0, 0, 0}, {"call __assertfail", 71, 0, 0, 0, 0, 0}};

/* Memory that the kernel may read: format, arguments and a string, each an allocation. */
static struct {
  char format[256];
  _Alignas(8) uint8_t arguments[400];
  char string[16];
  uint32_t results[32];
} memory;

static struct sg_allocation table[3];
static uint32_t lanes = 1;

static int32_t print(struct sg_env *env, uint64_t first, uint64_t last) {
  uint64_t formats[32], arguments[32];
  uint32_t results[32] = {0};
  for (uint64_t number = first; number < last; number++) {
    for (int lane = 0; lane < 32; lane++) {
      formats[lane] = (uint64_t)(uintptr_t)memory.format;
      arguments[lane] = (uint64_t)(uintptr_t)memory.arguments;
    }
    if (env->helpers->print(env, formats, arguments, lanes, 0, results)) return SG_STOPPED;
  }
  if (env->grid[0] == 1) memcpy(memory.results, results, sizeof results);
  return SG_DONE;
}

static int32_t fail(struct sg_env *env, uint64_t first, uint64_t last) {
  uint64_t message[32] = {0}, file[32] = {0}, function[32] = {0};
  uint32_t line[32] = {0};
  (void)first, (void)last;
  message[2] = (uint64_t)(uintptr_t)memory.format;
  file[2] = (uint64_t)(uintptr_t)memory.string;
  function[2] = 77;
  line[2] = 1234;
  return env->helpers->assert_fail(env, message, file, line, function, 0xC, 1) ? SG_STOPPED : SG_DONE;
}

static const struct sg_kernel print_kernel = {HEAD("print", SG_PRINTS), .sites = sites, .site_count = 2,
                                              .run = (void *)print};
static const struct sg_kernel fail_kernel = {HEAD("fail", SG_PRINTS), .sites = sites, .site_count = 2,
                                             .run = (void *)fail};

static size_t used;

static void put(const void *value, size_t size) {
  used = (used + size - 1) / size * size;
  memcpy(memory.arguments + used, value, size);
  used += size;
}

static void put_int(int value) { put(&value, 4); }
static void put_long(long long value) { put(&value, 8); }
static void put_double(double value) { put(&value, 8); }

static void clear(const char *format) {
  memset(&memory, 0, sizeof memory);
  snprintf(memory.format, sizeof memory.format, "%s", format);
  snprintf(memory.string, sizeof memory.string, "string");
  used = 0;
}

static struct test test;

static void expect(const char *text, uint32_t count) {
  run(&test);
  if (test.result.output_size != strlen(text) || memcmp(test.result.output, text, strlen(text)) != 0) {
    fprintf(stderr, "printed: %.*s\nexpected: %s\n", (int)test.result.output_size, test.result.output, text);
    exit(1);
  }
  CHECK(memory.results[0] == count);
}

static void test_numbers(void) {
  clear("plain 100%% % y %");
  expect("plain 100% % y %", 0);
  clear("%d %i|%5d|%-5d|%05d|%+d|% d|%.3d|%u %x %X %#x %o %#o\n");
  for (int i = 0; i < 8; i++) put_int(i - 2);
  put_int(-1), put_int(255), put_int(255), put_int(255), put_int(8), put_int(8);
  expect("-2 -1|    0|1    |00002|+3| 4|005|4294967295 ff FF 0xff 10 010\n", 14);
  clear("%hhd %hd %hu %hhx|%ld %lld %lu %zx %lc%c");
  put_int(511), put_int(70000), put_int(-1), put_int(-2), put_long(-5), put_long(1ll << 40), put_long(7), put_long(255);
  put_int('A'), put_int(0x100 + 'B');
  expect("-1 4464 65535 fe|-5 1099511627776 7 ff AB", 10);
  clear("%f %.2f %10.3e|%-9g|%G %a %F %Lf");
  put_double(1.5), put_double(2.345), put_double(-12345.678), put_double(1e-5), put_double(1e20), put_double(0.75);
  put_double(1e300 * 1e300), put_double(2);
  expect("1.500000 2.35 -1.235e+04|1e-05    |1E+20 0x1.8p-1 INF 2.000000", 8);
  clear("%*d|%-*d|%*d|%.*f|%.*f|%p");
  put_int(6), put_int(42), put_int(3), put_int(7), put_int(-4), put_int(5), put_int(1), put_double(2.25), put_int(-1);
  put_double(0.5), put_long(0xabc);
  expect("    42|7  |5   |2.2|0.500000|0xabc", 11);
}

static void test_strings(void) {
  uint64_t address = (uint64_t)(uintptr_t)memory.string;
  clear("%s|%8s|%-8s|%.3s|%2s%%");
  for (int i = 0; i < 5; i++) put_long((long long)address);
  expect("string|  string|string  |str|string%", 5);
  clear("%.6s");
  memset(memory.string, 'x', sizeof memory.string);
  put_long((long long)address + 10);
  expect("xxxxxx", 1);
  clear("%s");
  memset(memory.string, 'x', sizeof memory.string);
  put_long((long long)address);
  run_to(&test, SG_FAULT, "kernel print, line 70: the string for %s of printf at 0x");
  CHECK(strstr(test.result.message, "has no end in its memory (block 0,0,0 thread 0,0,0)"));
  clear("%s");
  put_long(64);
  run_to(&test, SG_FAULT, "at 0x40 lies in no memory");
}

static void test_limits(void) {
  char expected[200] = "";
  clear("");
  for (int i = 0; i < 34; i++) {
    strcat(memory.format, "%d ");
    snprintf(expected + strlen(expected), 8, i < 32 ? "%d " : "%%d ", i);
    put_int(i);
  }
  expect(expected, 32);
  clear("%300d|");
  put_int(5);
  run(&test);
  CHECK(test.result.output_size == 301 && test.result.output[299] == '5' && test.result.output[298] == ' ');
  clear("%1000s|%.500f");
  put_long((long long)(uintptr_t)memory.string), put_double(0.5);
  run(&test);
  CHECK(test.result.output_size == 1001 + 502);
  clear("%d%d");
  table[1].size = 4;
  put_int(1), put_int(2);
  run_to(&test, SG_FAULT, "line 70: argument 2 of printf at 0x");
  table[1].size = sizeof memory.arguments;
  clear("lane %d\n");
  put_int(9);
  lanes = 0x105;
  expect("lane 9\nlane 9\nlane 9\n", 1);
  CHECK(memory.results[2] == 1 && memory.results[8] == 1 && memory.results[1] == 0);
  lanes = 1;
  test.launch.grid[0] = 500;
  run(&test);
  CHECK(test.result.output_size == 3500);
  for (size_t i = 0; i < 3500; i += 7) CHECK(memcmp(test.result.output + i, "lane 9\n", 7) == 0);
  test.launch.grid[0] = 1;
  table[0].start += 8, table[0].size -= 8;
  run_to(&test, SG_FAULT, "the format of printf at 0x");
  table[0].start -= 8;
}

int main(void) {
  sg_pool *pool = sg_pool_create(3);
  setlocale(LC_ALL, "");
  table[0] = (struct sg_allocation){(uint64_t)(uintptr_t)memory.format, sizeof memory.format, 0, 0};
  table[1] = (struct sg_allocation){(uint64_t)(uintptr_t)memory.arguments, sizeof memory.arguments, 0, 0};
  table[2] = (struct sg_allocation){(uint64_t)(uintptr_t)memory.string, sizeof memory.string, SG_CONSTANT, 0};
  test = open_test(pool, &print_kernel, 1, 32);
  test.launch.allocations = table;
  test.launch.allocation_count = 3;
  test_numbers();
  test_strings();
  test_limits();
  close_test(&test);
  test = open_test(pool, &fail_kernel, 1, 32);
  test.launch.allocations = table;
  test.launch.allocation_count = 3;
  clear("i < n");
  run_to(&test, SG_ASSERT, "kernel fail, line 71: assertion `i < n` failed in ?, string:1234 (block 0,0,0 thread 2,");
  close_test(&test);
  sg_pool_destroy(pool);
  return 0;
}
