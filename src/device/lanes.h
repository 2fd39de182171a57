/* SPDX-License-Identifier: BSD-3-Clause
 * Vectors of doubles as every loop body uses them: one number in all lanes, loads, stores.
 *
 * Floor: device.  Included after the variant has defined `lanes`. */
#ifndef DEVICE_LANES_H
#define DEVICE_LANES_H

#include <string.h>

#include "base/types.h"

static inline lanes splat(real x)
{
  return x - (lanes){0};
}

static inline lanes load(const real *from)
{
  lanes v;
  memcpy(&v, from, sizeof v);
  return v;
}

static inline void store(real *to, lanes v)
{
  memcpy(to, &v, sizeof v);
}

#endif
