/* Time that only goes forward. */
#ifndef KKT_BASE_CLOCK_H
#define KKT_BASE_CLOCK_H

/* Seconds of the monotonic clock, from a moment that is the same for all of a process. */
double kkt_clock_seconds(void);

#endif
