/* The cards that a machine can have; the table is made from tessera/cards.toml. */
#ifndef SOFTGPU_CARDS_H
#define SOFTGPU_CARDS_H

struct card {
  const char *name, *full_name;
  unsigned long long memory; /* bytes, like everything but the clocks in kHz and the bandwidths in MB/s */
  int major, minor, sms, clock, threads_per_sm, blocks_per_sm, shared_per_sm, shared_per_block, l2, bandwidth, bus_bits;
  int host_bandwidth; /* in each direction */
  int fp32, fp16, fp64, int32, conversions; /* results of an SM in a clock */
  int tensor;                               /* 10^9 operations a second with factors of f16, two for a product */
};

struct card_name {
  const char *name;
  unsigned card;
};

extern const struct card cards[];
extern const struct card_name card_names[];
extern const unsigned card_name_count;

#endif
