/* SPDX-License-Identifier: BSD-3-Clause
 * Routing on the CPU with the certified filter.
 *
 * Floor: device. */
#ifndef DEVICE_CPU_SCREEN_H
#define DEVICE_CPU_SCREEN_H

struct device;
struct route_job;

/* The same result as cpu_route_exact(), with the filter. */
int screen_route(struct device *dev, struct route_job *job);

#endif
