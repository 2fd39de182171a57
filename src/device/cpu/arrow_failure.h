/* SPDX-License-Identifier: BSD-3-Clause
 * Why an attempt to solve an arrow system failed.
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CPU_ARROW_FAILURE_H
#define DEVICE_CPU_ARROW_FAILURE_H

#include "device/cpu/arrow_impl.h"

/* Set the outcome of a failed attempt.  attempt_fail_row() finds the lowest row whose block has a
 * bad pivot.  For attempt_fail_border(), workers[0] has the Schur complement, whose pivot `at`
 * failed. */
void attempt_fail_row(const struct attempt *a);
void attempt_fail_border(const struct attempt *a, idx at);
/* Set ARROW_NOT_FINITE if an entry of the system is not finite; returns 1 in that case. */
int attempt_fail_entry(const struct attempt *a);

#endif
