/* SPDX-License-Identifier: BSD-3-Clause
 * A number is rounded to a multiple of a power of two that depends on its size. */
#include "model/precision.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  int bits;  /* of the significand */
  int least; /* all finite numbers are multiples of 2^least */
  int end;   /* numbers of size 2^end or more become infinite */
} formats[PRECISIONS] = {[PRECISION_F32] = {"f32", 24, -149, 128},
                         [PRECISION_BF16] = {"bf16", 8, -133, 128},
                         [PRECISION_F16] = {"f16", 11, -24, 16},
                         [PRECISION_TF32] = {"tf32", 11, -136, 128}};

const char *precision_name(enum precision precision)
{
  return formats[precision].name;
}

enum precision precision_of(const char *name)
{
  int i = 0;
  while (i < PRECISIONS && strcmp(name, formats[i].name) != 0) i++;
  return (enum precision)i;
}

float precision_round(float x, enum precision precision)
{
  int power;
  if (!isfinite(x) || x == 0) return x;
  frexp((double)x, &power); /* |x| is below 2^power */
  int unit = power - formats[precision].bits;
  if (unit < formats[precision].least) unit = formats[precision].least;
  double units = ldexp((double)x, -unit);
  double whole = precision == PRECISION_TF32 ? round(units) : nearbyint(units);
  double y = ldexp(whole, unit);
  if (fabs(y) >= ldexp(1, formats[precision].end)) return copysignf(INFINITY, x);
  return (float)y;
}
