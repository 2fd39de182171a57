/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for training: dense products and gradients (the triad of N.40 to N.41),
 * their sparse forms (N.42), and Adam.  In f32 they have the bits of model/triad.h and model/adam.h
 * for any thread count and variant.
 *
 * Floor: device.
 *
 * Arrays are on the device's side (buffer.h); on a CPU device any memory will do, and the outputs
 * are divided among the threads.  Each output of a product is one chain, and each output of a
 * gradient is one chain per chunk of rows.  Not collective.  ERR_INTERNAL: a dimension is not
 * positive, or a stride is too short; ERR_DEVICE without fused multiply-add; ERR_MEMORY. */
#ifndef DEVICE_TRIAD_H
#define DEVICE_TRIAD_H

#include "device/device.h"
#include "model/adam.h"
#include "model/precision.h"
#include "model/triad.h"

/* ERR_INTERNAL if a dimension is not positive or a stride is too short. */
int device_triad_product_check(const struct triad_product *p);
int device_triad_gradient_check(const struct triad_gradient *g);

/* Products and gradients.  Every precision but f32 needs the matrix unit of a GPU (tensor.h).
 * `work` is on the device's side and has the bytes that the functions below give, which may be 0.
 * For small operands it may be NULL: a GPU then takes memory that no memory plan counts. */
int device_triad_product(struct device *dev, enum precision precision,
                         const struct triad_product *p, void *work);
int device_triad_gradient(struct device *dev, enum precision precision,
                          const struct triad_gradient *g, void *work);
gidx device_triad_product_bytes(const struct device *dev, enum precision precision,
                                const struct triad_product *p);
gidx device_triad_gradient_bytes(const struct device *dev, enum precision precision,
                                 const struct triad_gradient *g);

/* Lists may be empty, and there may be no list.  On a GPU these functions may return before they
 * have ended, as those of train.h may. */
int device_triad_sparse(struct device *dev, const struct triad_lists *l, float *out);
int device_triad_sparse_gradient(struct device *dev, const struct triad_lists *l, float *out);
int device_triad_dots(struct device *dev, const struct triad_lists *l, const float *rows,
                      float *out);
int device_adam(struct device *dev, const struct adam_state *s, const struct adam_rates *rates);

/* Bytes that a CPU with `threads` threads takes while a product or gradient with k inputs runs. */
gidx cpu_triad_bytes(int threads, idx k);

#endif
