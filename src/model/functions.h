/* SPDX-License-Identifier: BSD-3-Clause
 * Exponential, logarithm and hyperbolic tangent of float32 (N.26), with the same bits everywhere.
 *
 * Floor: model.  They consist of + - x /, fma and changes of the exponent.  All processors round
 * these in the same way; the functions of C libraries differ. */
#ifndef MODEL_FUNCTIONS_H
#define MODEL_FUNCTIONS_H

/* 2^x, with gradual underflow: +0 below -150, infinite from 128 on. */
float exp2_f32(float x);

/* The natural logarithm; log of +-0 is -infinity, of a negative number NaN. */
float log_f32(float x);

float tanh_f32(float x);

#endif
