/* SPDX-License-Identifier: BSD-3-Clause
 * Products and gradients by the matrix unit of a GPU (N.45): operands are rounded to bf16, f16 or
 * tf32, sums are f32.
 *
 * Floor: device.
 *
 * A number's bits are those of its line and column alone: the same for any number of rows, cut into
 * tiles, or rank, on GPUs whose unit adds alike, which device_tensor_probe() tells apart.  They are
 * not those of another kind of GPU, and a CPU has none.  Arrays are on the device's side; `work` is
 * too, of device_tensor_bytes().  Not collective.  ERR_DEVICE where there is no such unit;
 * ERR_INTERNAL as in triad.h. */
#ifndef DEVICE_TENSOR_H
#define DEVICE_TENSOR_H

#include "device/triad.h"
#include "model/precision.h"

/* ERR_DEVICE, saying what to do, unless the device has a matrix unit for this precision. */
int device_tensor_has(const struct device *dev, enum precision precision);

int device_tensor_product(struct device *dev, enum precision precision,
                          const struct triad_product *p, void *work);
int device_tensor_gradient(struct device *dev, enum precision precision,
                           const struct triad_gradient *g, void *work);

/* Bytes of work for a result of so many rows and columns, whose chains have so many depths. */
gidx device_tensor_bytes(const struct device *dev, enum precision precision, idx rows, idx columns,
                         idx depth);

/* *unit <- a hash of what the matrix unit makes of fixed numbers, not 0: two units with equal ones
 * are taken to add alike.  ERR_DEVICE where a result depends on its place in a tile, or is further
 * from the exact one than (N.45) allows. */
int device_tensor_probe(struct device *dev, enum precision precision, uint64_t *unit);

/* Multiply-adds a second that the unit cannot exceed; NaN where that is not known. */
double device_tensor_peak(const struct device *dev, enum precision precision);

#endif
