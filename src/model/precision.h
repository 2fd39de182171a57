/* SPDX-License-Identifier: BSD-3-Clause
 * Precisions in which products are made: f32 in an order of its own (N.40), or operands that are
 * rounded first and added by a matrix unit (N.45).
 *
 * Floor: model. */
#ifndef MODEL_PRECISION_H
#define MODEL_PRECISION_H

#include "base/types.h"

enum precision { PRECISION_F32, PRECISION_BF16, PRECISION_F16, PRECISION_TF32, PRECISIONS };

/* As options and files have it. */
const char *precision_name(enum precision precision);
enum precision precision_of(const char *name); /* PRECISIONS: there is none */

/* (N.45) x as an operand: 8 bits of significand in bf16 and 11 in f16, the nearest, ties to even;
 * 11 in tf32, ties away from 0.  Beyond the largest it is infinite; f32 keeps x. */
float precision_round(float x, enum precision precision);

#endif
