#include "base/random.h"

uint64_t kkt_random_next(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t kkt_random_mix(uint64_t seed) {
    return kkt_random_next(&seed);
}

double kkt_random_unit(uint64_t bits) {
    return (double)(bits >> 11) * 0x1p-53;
}
