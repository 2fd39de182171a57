/* SPDX-License-Identifier: BSD-3-Clause
 * Memory of a GPU: the plan, workspaces, buffers with a page-locked host side, and all copies.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_MEMORY_H
#define DEVICE_CUDA_MEMORY_H

#include "device/cuda/cuda.h"

/* Make the plan from the memory that is free now; ERR_MEMORY if even the smallest does not fit. */
int cuda_plan(struct device *dev);

/* Work that needs memory of the plan, and `others` bytes in addition, is done in a loop:
 *     do status = work(); while (cuda_replan(dev, others, &status));
 *
 * The plan cannot know that another process takes memory after the plan was made, or that a job
 * needs more buffers than were allowed for.  So if *status is ERR_MEMORY, this function frees all
 * planned memory, makes a plan from the memory that is then free, and returns 1.  The work must
 * then start again, and bring its window to the device again.  Otherwise the function returns 0.
 * *status is then the status of the work, or ERR_MEMORY if no plan fits. */
int cuda_replan(struct device *dev, gidx others, int *status);

/* Stop using the certified filter, and free its memory. */
void cuda_screen_stop(struct cuda_state *s);

/* Give a workspace at least this many bytes; if it grows, its contents are lost.  ERR_MEMORY; the
 * message says how many bytes were asked for, and how many are free. */
int cuda_reserve(struct cuda_state *s, struct cuda_work *w, gidx bytes);
void cuda_release(struct cuda_work *w);

/* Operations of the table. */
int cuda_buffer_alloc(struct device *dev, struct buffer *b);
int cuda_buffer_wrap(struct device *dev, struct buffer *b);
int cuda_buffer_wrap_spare(struct device *dev, struct buffer *b);
void cuda_buffer_free(struct device *dev, struct buffer *b);
int cuda_bytes_available(struct device *dev, gidx *bytes);
int cuda_put(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
int cuda_get(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
int cuda_clear(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
int cuda_gather(struct device *dev, const struct gather_job *job);
void cuda_pin(struct device *dev, void *host, gidx bytes);
void cuda_unpin(struct device *dev, void *host);
/* The device address of pinned memory; NULL if any part of it is not pinned. */
const void *cuda_pinned(const struct cuda_state *s, const void *host, gidx bytes);
int cuda_copy_rate(struct device *dev, double *rate);

#endif
