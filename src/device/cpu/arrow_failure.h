/* SPDX-License-Identifier: BSD-3-Clause
 * The reason why a try to solve an arrow system failed.
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CPU_ARROW_FAILURE_H
#define DEVICE_CPU_ARROW_FAILURE_H

#include "device/cpu/arrow_impl.h"

/* Set the outcome of a try that failed: at the lowest row whose block has a bad pivot; or at pivot
 * `at` of the Schur complement in the first worker, as border_make left it. */
void attempt_fail_row(const struct attempt *a);
void attempt_fail_border(const struct attempt *a, idx at);
/* Set ARROW_NOT_FINITE where an entry is not finite; returns whether one is. */
int attempt_fail_entry(const struct attempt *a);

#endif
