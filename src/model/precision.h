/* SPDX-License-Identifier: BSD-3-Clause
 * Precisions of products: f32, summed in the order of (N.40); or operands that are rounded first,
 * with products that a matrix unit adds (N.45).
 *
 * Floor: model. */
#ifndef MODEL_PRECISION_H
#define MODEL_PRECISION_H

#include "base/types.h"

enum precision { PRECISION_F32, PRECISION_BF16, PRECISION_F16, PRECISION_TF32, PRECISIONS };

/* The name of a precision in options and files, and the precision of a name. */
const char *precision_name(enum precision precision);
enum precision precision_of(const char *name); /* PRECISIONS: there is no such name */

/* (N.45) x as an operand: rounded to 8 bits of significand in bf16 and 11 in f16, ties to even; to
 * 11 bits in tf32, ties away from 0.  Values beyond the largest become infinite.  f32 keeps x. */
float precision_round(float x, enum precision precision);

#endif
