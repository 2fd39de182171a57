/* SPDX-License-Identifier: BSD-3-Clause
 * Products on the matrix unit.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_TENSOR_H
#define DEVICE_CUDA_TENSOR_H

#include "device/tensor.h"

struct cuda_state;
struct triad_args;

/* Bytes of a narrowed operand of `rows` rows, or of `columns` columns.  Narrowed: rounded to the
 * precision and stored as tiles. */
gidx cuda_tensor_rows_bytes(enum precision precision, gidx rows, gidx depth);
gidx cuda_tensor_columns_bytes(enum precision precision, gidx columns, gidx depth);

/* Narrow the rows, narrow the columns, and then multiply.  These functions return before the GPU
 * has ended; later work on the stream waits. */
int cuda_tensor_rows(struct device *dev, enum precision precision, const struct triad_args *t,
                     void *rows);
int cuda_tensor_columns(struct device *dev, enum precision precision, const struct triad_args *t,
                        void *columns);
int cuda_tensor_tiles(struct device *dev, enum precision precision, const struct triad_args *t,
                      const void *rows, const void *columns);

/* Operations of the table in backend.h. */
int cuda_tensor_product(struct device *dev, enum precision precision, const struct triad_product *p,
                        struct tensor_stored stored, void *work);
int cuda_tensor_gradient(struct device *dev, enum precision precision,
                         const struct triad_gradient *g, struct tensor_stored stored, void *work);
gidx cuda_tensor_product_bytes(const struct device *dev, enum precision precision,
                               const struct triad_product *p, struct tensor_stored stored);
gidx cuda_tensor_gradient_bytes(const struct device *dev, enum precision precision,
                                const struct triad_gradient *g, struct tensor_stored stored);
double cuda_tensor_peak(const struct device *dev, enum precision precision);

#endif
