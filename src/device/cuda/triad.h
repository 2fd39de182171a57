/* SPDX-License-Identifier: BSD-3-Clause
 * Products, gradients, sparse forms and Adam on a GPU: operations of the table in backend.h.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_TRIAD_H
#define DEVICE_CUDA_TRIAD_H

#include "device/triad.h"

struct triad_args;
struct cuda_state;

/* The arguments of kernels. */
struct triad_args triad_product_args(const struct triad_product *p);
struct triad_args triad_gradient_args(const struct triad_gradient *g);

/* Bytes for transposed rows or columns, if transposing them first is faster; otherwise 0. */
gidx cuda_triad_rows_bytes(const struct triad_args *a);
gidx cuda_triad_columns_bytes(const struct triad_args *a);

/* cuda_triad_rows(), cuda_triad_columns(): transpose an operand if the function above gives bytes
 * for it, and let `a` point to the result.  cuda_triad_tiles(): multiply, in small tiles if
 * cuda_triad_small().  All return before the GPU has ended; later work on the stream waits. */
int cuda_triad_rows(struct device *dev, struct triad_args *a, void *to);
int cuda_triad_columns(struct device *dev, struct triad_args *a, void *to);
int cuda_triad_small(const struct cuda_state *s, gidx rows, gidx columns);
int cuda_triad_tiles(struct device *dev, struct triad_args *a);

int cuda_triad_product(struct device *dev, enum precision precision, const struct triad_product *p,
                       void *work);
int cuda_triad_gradient(struct device *dev, enum precision precision,
                        const struct triad_gradient *g, void *work);
gidx cuda_triad_product_bytes(const struct device *dev, enum precision precision,
                              const struct triad_product *p);
gidx cuda_triad_gradient_bytes(const struct device *dev, enum precision precision,
                               const struct triad_gradient *g);
int cuda_triad_sparse(struct device *dev, const struct triad_lists *l, int is_gradient, float *out);
int cuda_triad_dots(struct device *dev, const struct triad_lists *l, const float *rows, float *out);
int cuda_adam(struct device *dev, const struct adam_state *s, const struct adam_rates *rates);

#endif
