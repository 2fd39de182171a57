/* SPDX-License-Identifier: BSD-3-Clause
 * The matrix unit of a GPU (N.45): for products and gradients it rounds operands to bf16, f16
 * or tf32, and adds in f32.
 *
 * Floor: device.
 *
 * A number's bits are those of its line and column alone: the same for any number of rows, cut into
 * tiles, or rank, on GPUs whose unit adds alike, which device_tensor_probe() tells apart.  They are
 * not those of another kind of GPU, and a CPU has none.  The operations are those of triad.h, and
 * the same where matrices are stored in 16 bits a number.  Not collective. */
#ifndef DEVICE_TENSOR_H
#define DEVICE_TENSOR_H

#include "device/triad.h"
#include "model/precision.h"

/* ERR_DEVICE, saying what to do, unless the device has a matrix unit for this precision. */
int device_tensor_has(const struct device *dev, enum precision precision);

/* Which matrices of a product or gradient are stored in its precision, bf16 or f16, and not in f32.
 * Pointers to them are cast; strides count numbers, as always. */
struct tensor_stored {
  int left;   /* x */
  int right;  /* W, or dy */
  int result; /* y, each number rounded once more; not that of a gradient */
};

/* Bits are those with operands of f32 that have the same values.  `work` is on the device's side,
 * of so many bytes, for arrays that are where they are when it is run: none, where what is stored
 * has its lines at multiples of 16 bytes.  ERR_INTERNAL: tf32 is not stored. */
int device_tensor_product(struct device *dev, enum precision precision,
                          const struct triad_product *p, struct tensor_stored stored, void *work);
int device_tensor_gradient(struct device *dev, enum precision precision,
                           const struct triad_gradient *g, struct tensor_stored stored, void *work);
gidx device_tensor_product_bytes(const struct device *dev, enum precision precision,
                                 const struct triad_product *p, struct tensor_stored stored);
gidx device_tensor_gradient_bytes(const struct device *dev, enum precision precision,
                                  const struct triad_gradient *g, struct tensor_stored stored);

/* *unit <- a hash of what the matrix unit makes of fixed numbers, not 0: two units with equal ones
 * are taken to add alike.  ERR_DEVICE where a result depends on its place in a tile, or is further
 * from the exact one than (N.45) allows. */
int device_tensor_probe(struct device *dev, enum precision precision, uint64_t *unit);

/* Multiply-adds a second that the unit cannot exceed; NaN where that is not known. */
double device_tensor_peak(const struct device *dev, enum precision precision);

#endif
