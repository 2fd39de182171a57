/* SPDX-License-Identifier: BSD-3-Clause
 * The peer of routing in benchmarks: one dense product by OpenBLAS.
 *
 * Floor: cli. */
#ifndef CLI_BENCH_PEER_H
#define CLI_BENCH_PEER_H

#include "base/types.h"

enum { PEER_ROWS = 512 };

/* Seconds of rows[n][p] x atoms[k][p]' by sgemm, PEER_ROWS rows at a time into
 * product[PEER_ROWS][k]; 0 when OpenBLAS is not installed. */
double peer_sgemm(const float *rows, const float *atoms, idx n, idx k, idx p, float *product,
                  int threads);

#endif
