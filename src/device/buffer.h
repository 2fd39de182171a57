/* SPDX-License-Identifier: BSD-3-Clause
 * Memory of a device, and all copies between host and device.
 *
 * Floor: device.
 *
 * A buffer has two sides: host memory, and the memory that the device computes on.  On a CPU device
 * both sides are the same memory, and a copy does nothing.  A dry device (device.h) allocates
 * nothing; it adds up the bytes that the buffers would take. */
#ifndef DEVICE_BUFFER_H
#define DEVICE_BUFFER_H

#include "base/types.h"

struct device;

struct buffer {
  void *host, *device;
  gidx bytes;
  int owned; /* 1: the host side is freed with the buffer */
};

/* Both sides are zeroed.  On a GPU the host side is page-locked.  ERR_MEMORY; the message says
 * how many bytes were asked for. */
int buffer_alloc(struct device *dev, struct buffer *b, gidx bytes);
/* The host side is the caller's memory, which must stay valid until buffer_free() and keeps its
 * contents.  On a GPU the device side is zeroed; nothing is copied to it. */
int buffer_wrap(struct device *dev, struct buffer *b, void *host, gidx bytes);
/* As buffer_wrap(), but the device side is not zeroed.  ERR_MEMORY on a GPU unless enough memory is
 * free that the GPU's memory plan does not need. */
int buffer_wrap_spare(struct device *dev, struct buffer *b, void *host, gidx bytes);
/* As buffer_alloc(), but on a GPU the buffer has no host side. */
int buffer_alloc_device(struct device *dev, struct buffer *b, gidx bytes);
/* A view of host memory, for operations of a CPU device.  Needs no buffer_free. */
static inline struct buffer host_buffer(void *host)
{
  return (struct buffer){.host = host, .device = host};
}
/* Safe on a zeroed buffer. */
void buffer_free(struct device *dev, struct buffer *b);
/* Copy bytes at .. at + bytes - 1 to the device, or from it. */
int device_put(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
int device_get(struct device *dev, const struct buffer *b, gidx at, gidx bytes);

/* Bytes at .. at + bytes - 1 of the device's side <- 0. */
int device_clear(struct device *dev, const struct buffer *b, gidx at, gidx bytes);

/* Copy items on the device side: to[at + i] <- from[names[i]], or from[i] when names is NULL.  An
 * item has `unit` bytes, a multiple of 4.  `from` and `to` are different buffers. */
struct gather_job {
  const struct buffer *from;
  const idx *names; /* [n] host memory */
  gidx n, unit;
  struct buffer *to;
  gidx at;
};
int device_gather(struct device *dev, const struct gather_job *job);

/* Page-lock the caller's host memory until host_unpin(), so that a GPU copies it faster.  Does
 * nothing where this is impossible. */
void host_pin(struct device *dev, void *host, gidx bytes);
void host_unpin(struct device *dev, void *host);

/* *bytes <- the bytes that buffer_wrap_spare() can give now; if they are 0 or less, it can give
 * none.  INT64_MAX on the CPU. */
int buffer_bytes_available(struct device *dev, gidx *bytes);

#endif
