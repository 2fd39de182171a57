/* SPDX-License-Identifier: BSD-3-Clause
 * The matrix unit of a GPU (N.45): products and gradients whose operands are rounded to bf16, f16
 * or tf32, with sums in f32.
 *
 * Floor: device.
 *
 * The bits of an output depend on its row and its column of the operands alone, not on the number
 * of rows, tiles or ranks.  They are equal on GPUs whose matrix units add alike;
 * device_tensor_probe() tells these apart.  Other GPUs give other bits, and a CPU has no matrix
 * unit.  The operations are those of triad.h, and the same for matrices that are stored in 16 bits
 * per number.  Not collective. */
#ifndef DEVICE_TENSOR_H
#define DEVICE_TENSOR_H

#include "device/triad.h"
#include "model/precision.h"

/* ERR_DEVICE, with a message that says what to do, unless the device has a matrix unit for this
 * precision. */
int device_tensor_has(const struct device *dev, enum precision precision);

/* Which matrices of a product or gradient are stored in its precision (bf16 or f16) and not in f32.
 * Their pointers are cast to float pointers.  Strides count numbers, not bytes. */
struct tensor_stored {
  int left;   /* x */
  int right;  /* W, or dy */
  int result; /* y, each number rounded once more; 0 for a gradient */
};

/* The bits are those for f32 operands of the same values.  `work` is on the device's side and has
 * the bytes that the functions below give.  These depend on the addresses of the arrays: a GPU of
 * compute capability 9.0 needs none if both operands are stored and their lines begin at multiples
 * of 16 bytes.
 * ERR_INTERNAL: tf32 cannot be stored, nor can the result of a gradient. */
int device_tensor_product(struct device *dev, enum precision precision,
                          const struct triad_product *p, struct tensor_stored stored, void *work);
int device_tensor_gradient(struct device *dev, enum precision precision,
                           const struct triad_gradient *g, struct tensor_stored stored, void *work);
gidx device_tensor_product_bytes(const struct device *dev, enum precision precision,
                                 const struct triad_product *p, struct tensor_stored stored);
gidx device_tensor_gradient_bytes(const struct device *dev, enum precision precision,
                                  const struct triad_gradient *g, struct tensor_stored stored);

/* *unit <- a hash, never 0, of products of fixed numbers by the matrix unit.  Two units with equal
 * hashes are taken to add alike.  ERR_DEVICE: a result depends on its place in a tile, or is
 * further from the exact value than (N.45) allows. */
int device_tensor_probe(struct device *dev, enum precision precision, uint64_t *unit);

/* An upper bound on the unit's multiply-adds per second; NaN: not known for this GPU. */
double device_tensor_peak(const struct device *dev, enum precision precision);

#endif
