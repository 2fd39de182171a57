/* SPDX-License-Identifier: BSD-3-Clause
 * The median of a benchmark's runs.
 *
 * Floor: cli. */
#ifndef CLI_BENCH_MEDIAN_H
#define CLI_BENCH_MEDIAN_H

/* Of values[count], count >= 1, which are sorted. */
double median(double *values, int count);

#endif
