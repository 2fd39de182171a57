/* SPDX-License-Identifier: BSD-3-Clause
 * One attempt to solve an arrow system.
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CPU_ARROW_TRY_H
#define DEVICE_CPU_ARROW_TRY_H

#include "device/cpu/arrow_impl.h"

/* Sum the rows, solve the border and set the outcome. */
void attempt_solve(struct attempt *a);
/* Write the steps; they are 0 if the outcome is not OK. */
void attempt_steps(struct attempt *a);

#endif
