/* SPDX-License-Identifier: BSD-3-Clause
 * Memory of a GPU: what the plan says of it, workspaces, buffers with a page-locked host side, and
 * the only copies.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_MEMORY_H
#define DEVICE_CUDA_MEMORY_H

#include "device/cuda/cuda.h"

/* Make the plan from the memory that is free now; ERR_MEMORY where nothing fits. */
int cuda_plan(struct device *dev);

/* Work that may need what the plan counts on, and `others` bytes beside, is done in a loop:
 *     do status = work(); while (cuda_replan(dev, others, &status));
 *
 * The plan cannot know that another process takes memory after it was made, or that a job wants
 * more buffers than were kept free for it.  So where an allocation failed, all that is planned is
 * freed, a plan is made from what is left, and 1 is returned: the work is to be done anew, and must
 * bring back what it needs of the window.  This is the only place that tries again.  Else 0;
 * *status is that of the work, or ERR_MEMORY where nothing fits. */
int cuda_replan(struct device *dev, gidx others, int *status);

/* The certified filter is not used any more: its memory is free for others. */
void cuda_screen_stop(struct cuda_state *s);

/* Let a workspace have so many bytes; its old content is lost where it grows.  ERR_MEMORY with the
 * numbers. */
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
/* The device's address of memory that is pinned; NULL: it is not, or not all of it. */
const void *cuda_pinned(const struct cuda_state *s, const void *host, gidx bytes);
int cuda_copy_rate(struct device *dev, double *rate);

#endif
