/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for training: the dense triad, its sparse side, and Adam, in f32 with the
 * bits of model/triad.h and model/adam.h for any number of threads and variant.
 *
 * Floor: device.
 *
 * Arrays are on the device's side (buffer.h): on a CPU device any memory will do.  Work is shared
 * out over outputs, each of which is one chain, or one for each chunk of a gradient.  Not
 * collective.  ERR_INTERNAL: a dimension that is not positive, or a stride that is too short;
 * ERR_DEVICE without fused multiply-add; ERR_MEMORY. */
#ifndef DEVICE_TRIAD_H
#define DEVICE_TRIAD_H

#include "device/device.h"
#include "model/adam.h"
#include "model/precision.h"
#include "model/triad.h"

/* ERR_INTERNAL where one of these has no size, or strides that are too short. */
int device_triad_product_check(const struct triad_product *p);
int device_triad_gradient_check(const struct triad_gradient *g);

/* Products and gradients; but for f32 by the matrix unit of a GPU (tensor.h).  `work` is on the
 * device's side, of so many bytes, which may be 0; NULL: a GPU has room of its own, which no plan
 * counts, for what is small. */
int device_triad_product(struct device *dev, enum precision precision,
                         const struct triad_product *p, void *work);
int device_triad_gradient(struct device *dev, enum precision precision,
                          const struct triad_gradient *g, void *work);
gidx device_triad_product_bytes(const struct device *dev, enum precision precision,
                                const struct triad_product *p);
gidx device_triad_gradient_bytes(const struct device *dev, enum precision precision,
                                 const struct triad_gradient *g);

/* Lists may be empty, and there may be none.  On a GPU these may return before they have ended, as
 * of train.h. */
int device_triad_sparse(struct device *dev, const struct triad_lists *l, float *out);
int device_triad_sparse_gradient(struct device *dev, const struct triad_lists *l, float *out);
int device_triad_dots(struct device *dev, const struct triad_lists *l, const float *rows,
                      float *out);
int device_adam(struct device *dev, const struct adam_state *s, const struct adam_rates *rates);

/* Bytes that a CPU takes while such a product or gradient runs, for so many threads. */
gidx cpu_triad_bytes(int threads, idx k);

#endif
