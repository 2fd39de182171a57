/* SPDX-License-Identifier: BSD-3-Clause
 * The device that rank 0 computes on.
 *
 * Floor: terminal; included by src/terminal and by the command.  Not collective. */
#ifndef TERMINAL_DEVICE_H
#define TERMINAL_DEVICE_H

#include <string.h>

#include "terminal/layout.h"

/* Open the device that the task asks for.  `auto` takes a GPU if there is one, if it has enough
 * memory, and if the work pays for its start.  ERR_MEMORY with the numbers if the pass does not fit
 * on a GPU and the device is `cuda`. */
int terminal_device_open(struct device *dev, const struct terminal_task *t, struct comm *c);

/* A dry device of the kind that terminal_device_open() opens if there is a GPU. */
int terminal_device_dry(struct device *dev, const struct terminal_task *t, struct comm *c);

#endif
