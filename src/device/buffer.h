/* SPDX-License-Identifier: BSD-3-Clause
 * Memory of a device and its copies, which are the only ones between host and device.
 *
 * Floor: device.
 *
 * A buffer has two sides: the host's, and the one that the device computes on.  On a CPU device
 * both are the same memory and a copy does nothing.  A dry device (device.h) allocates nothing and
 * adds up what the buffers would take. */
#ifndef DEVICE_BUFFER_H
#define DEVICE_BUFFER_H

#include "base/types.h"

struct device;

struct buffer {
  void *host, *device;
  gidx bytes;
  int owned; /* 1: the host side is freed with the buffer */
};

/* Zeroed on both sides; the host side of a GPU's is page-locked.  ERR_MEMORY with the numbers. */
int buffer_alloc(struct device *dev, struct buffer *b, gidx bytes);
/* The same around host memory of the caller, which stays until buffer_free; not copied. */
int buffer_wrap(struct device *dev, struct buffer *b, void *host, gidx bytes);
/* As buffer_wrap, but not zeroed, and ERR_MEMORY unless memory is free that the device has not
 * planned for anything else. */
int buffer_wrap_spare(struct device *dev, struct buffer *b, void *host, gidx bytes);
/* For the device alone: on a GPU there is no host side. */
int buffer_alloc_device(struct device *dev, struct buffer *b, gidx bytes);
/* A view of host memory for operations of a CPU device; it needs no buffer_free. */
static inline struct buffer host_buffer(void *host)
{
  return (struct buffer){.host = host, .device = host};
}
/* Safe on a zeroed buffer. */
void buffer_free(struct device *dev, struct buffer *b);
/* Copy bytes at .. at + bytes - 1 to the device, or from it. */
int device_put(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
int device_get(struct device *dev, const struct buffer *b, gidx at, gidx bytes);

/* Bytes at .. at + bytes - 1 of the device's side become 0. */
int device_clear(struct device *dev, const struct buffer *b, gidx at, gidx bytes);

/* Items at .. at + n - 1 of `to` <- those of `from` that are named, or its first n (names NULL), on
 * the device side; an item has `unit` bytes, a multiple of 4.  `from` and `to` are two buffers. */
struct gather_job {
  const struct buffer *from;
  const idx *names; /* [n] host */
  gidx n, unit;
  struct buffer *to;
  gidx at;
};
int device_gather(struct device *dev, const struct gather_job *job);

/* Page-lock host memory of the caller, which a GPU then reads and writes faster, until
 * host_unpin(); nothing where that cannot be. */
void host_pin(struct device *dev, void *host, gidx bytes);
void host_unpin(struct device *dev, void *host);

/* *bytes <- what buffer_wrap_spare() would give now; 0 or less: nothing.  On the CPU there is no
 * limit. */
int buffer_bytes_available(struct device *dev, gidx *bytes);

#endif
