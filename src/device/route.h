/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: the dictionary it holds, and exact routing of rows over it.
 *
 * Floor: device.  Lists have the bits of model/route.h for any tile width, block size, thread count
 * and variant, with the certified filter or without. */
#ifndef DEVICE_ROUTE_H
#define DEVICE_ROUTE_H

#include "device/device.h"
#include "model/route.h"

/* Add count atoms[count][d][p] with global numbers first .. first + count - 1 to the device's share
 * of the dictionary.  The array stays where it is until the device forgets it or is closed: a
 * device that cannot hold all atoms copies them again.  ERR_MEMORY; ERR_INTERNAL beyond
 * max_atoms. */
int device_put_tile(struct device *dev, const float *atoms, idx count, idx first);

/* The device has no atoms any more, and takes others. */
int device_dictionary_free(struct device *dev);

/* *view <- the atoms put so far, as they were put and in that order, on the device side, until the
 * next call that takes memory or routes; zeroed where the device does not keep them so. */
int device_atoms(struct device *dev, struct buffer *view);

/* Route n rows over all atoms put so far (N.1 to N.3r).  Buffers are read and written on the device
 * side. */
struct route_job {
  const struct buffer *rows; /* [n][p] float, finite */
  idx n;
  idx top_k;                   /* entries a row, 1 .. MAX_TOP_S */
  struct exclusions excluded;  /* atoms not to be chosen; count 0: none */
  const struct buffer *chosen; /* the same on the device side; NULL: only the host has them */
  struct buffer *lists;        /* [n][top_k] struct entry, written */
  struct buffer *power;        /* [n] idx, written on both sides: rows of frames are routed times
                                * 2^power (N.2); NULL: as they are */
  struct bad_score bad;        /* written: the lowest score that is not finite, or row -1 */
  int scores_only; /* for measuring, GPU alone: nothing is chosen, lists are undefined */
};
int device_route(struct device *dev, struct route_job *job);

/* Write lists to columns at .. at + top_k - 1 of supports and of their scores; device sides. */
struct scatter_job {
  const struct buffer *lists; /* [n][top_k] struct entry */
  idx n, top_k, at, s;
  struct buffer *atoms;       /* [n][s] idx */
  struct buffer *score;       /* [n][s] float */
  const struct buffer *power; /* of the job that made the lists of frames; NULL where it had none */
};
int device_lists_scatter(struct device *dev, const struct scatter_job *job);

#endif
