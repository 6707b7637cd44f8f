/* A kernel family for the worker's tests: y = 2 x, in two launches. Its "cubin" is a word that
 * tells the stub driver how to misbehave. */
#ifndef KKT_TESTS_TOY_H
#define KKT_TESTS_TOY_H

#include "kernels/kernel.h"

extern const kkt_kernel toy_kernel;
/* A pipeline of toy_kernel and toy_next (z = 2 y) computes what toy_whole (z = 4 x) says;
 * toy_astray reads what nobody writes. */
extern const kkt_kernel toy_next, toy_astray, toy_whole;
kkt_status toy_lookup(const char *name, const kkt_kernel **out, kkt_error *err);

#endif
