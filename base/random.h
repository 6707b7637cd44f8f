/* Random numbers that are the same on every machine: SplitMix64 (Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators", 2014). Every seed is good. */
#ifndef KKT_BASE_RANDOM_H
#define KKT_BASE_RANDOM_H

#include <stdint.h>

/* The next 64 bits of the sequence; moves `*state` on. */
uint64_t kkt_random_next(uint64_t *state);
/* The first of the sequence that begins with `seed`: a hash of the seed. */
uint64_t kkt_random_mix(uint64_t seed);
/* 64 bits as a number in [0, 1). */
double kkt_random_unit(uint64_t bits);

#endif
