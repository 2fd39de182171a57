/* SPDX-License-Identifier: BSD-3-Clause
 * A device from inside: the operations of device.h as a table, one for the CPU and one for CUDA.
 *
 * Floor: device.  Arguments were checked by device.c. */
#ifndef DEVICE_BACKEND_H
#define DEVICE_BACKEND_H

#include "device/device.h"

struct backend {
  const char *kind;
  int (*open)(struct device *dev, const struct device_options *options);
  int (*prepare)(struct device *dev); /* what options say of the job; NULL: nothing */
  void (*close)(struct device *dev);
  int (*take)(struct device *dev, struct buffer *b);
  int (*hold)(struct device *dev, struct buffer *b);
  int (*wrap)(struct device *dev, struct buffer *b);
  int (*spare)(struct device *dev, struct buffer *b);
  void (*drop)(struct device *dev, struct buffer *b);
  int (*put)(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
  int (*get)(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
  int (*pick)(struct device *dev, const struct pick_job *job);
  int (*room)(struct device *dev, gidx *bytes); /* NULL: no limit */
  int (*idle)(struct device *dev, int *idle);   /* NULL: always */
  int (*put_tile)(struct device *dev, const float *atoms, idx count, idx first);
  int (*atoms)(struct device *dev, struct buffer *view); /* NULL: not kept so */
  int (*route)(struct device *dev, struct route_job *job);
  gidx (*codes_state)(const struct device *dev, idx m_most, real rho);
  int (*codes)(struct device *dev, const struct codes_job *job);
  int (*copy_rate)(struct device *dev, double *rate); /* NULL: not measured */
  double (*peak)(const struct device *dev, double seconds);
};

extern const struct backend backend_cpu;

/* In a build without CUDA its `open` fails with ERR_DEVICE and says how to get it (none.c). */
extern const struct backend backend_cuda;

#endif
