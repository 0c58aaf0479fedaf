/* The CPU's level, by the same bits as softgpu/engine/target.py (Intel SDM, CPUID and XGETBV). */
#include <cpuid.h>

#include "client.h"

#define HAS(word, bits) (((word) & (bits)) == (bits))

static uint64_t saved_states(void) {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

const char *sg_target_level(void) {
  const unsigned v3_1c = 1u << 12 | 1u << 20 | 1u << 22 | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29;
  const unsigned v3_7b = 1u << 3 | 1u << 5 | 1u << 8, lzcnt = 1u << 5;
  const unsigned v4_7b = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
  const unsigned vbmi_7b = 1u << 21, vbmi_7c = 1u << 1 | 1u << 6 | 1u << 8 | 1u << 11 | 1u << 12 | 1u << 14;
  const unsigned half_7d = 1u << 23, bfloat_71a = 1u << 5;
  unsigned a, b, c, d, a1, b1, c1, d1, more;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !HAS(c, v3_1c) || !HAS(saved_states(), 0x6))
    return 0;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !HAS(c, lzcnt) || !__get_cpuid_count(7, 0, &more, &b, &c, &d) ||
      !HAS(b, v3_7b))
    return 0;
  if (!HAS(b, v4_7b) || !HAS(saved_states(), 0xe6))
    return "x86-64-v3";
  if (!HAS(b, vbmi_7b) || !HAS(c, vbmi_7c))
    return "x86-64-v4";
  if (more < 1 || !__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1) || !HAS(d, half_7d) || !HAS(a1, bfloat_71a))
    return "x86-64-v4-vbmi";
  return "x86-64-v4-fp16";
}
