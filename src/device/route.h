/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: its dictionary, and exact routing of rows over it.
 *
 * Floor: device.  Lists have the bits of model/route.h for any tile width, block size, thread count
 * and variant, with the certified filter or without.  On a GPU, device_put_tile() and
 * device_lists_scatter() may return before they have ended. */
#ifndef DEVICE_ROUTE_H
#define DEVICE_ROUTE_H

#include "device/device.h"
#include "model/route.h"

/* Add atoms[count][d][p], whose global numbers are first .. first + count - 1, to the device's part
 * of the dictionary.  The array must stay until device_dictionary_free() or device_close(), since a
 * device that cannot hold all atoms copies them again.  ERR_MEMORY; ERR_INTERNAL beyond
 * max_atoms. */
int device_put_tile(struct device *dev, const float *atoms, idx count, idx first);

/* Drop all atoms, so that others can be put. */
int device_dictionary_free(struct device *dev);

/* *view <- the device side of all atoms put so far, in the order and form in which they were put.
 * It is valid until the next call that allocates or routes.  Zeroed where the device does not keep
 * the atoms in this form. */
int device_atoms(struct device *dev, struct buffer *view);

/* Route n rows over all atoms put so far (N.1 to N.3r).  Buffers are read and written on the device
 * side. */
struct route_job {
  const struct buffer *rows; /* [n][p] float, finite */
  idx n;
  idx top_k;                   /* entries per row, 1 .. MAX_TOP_S */
  struct exclusions excluded;  /* atoms that a row must not choose; count 0: none */
  const struct buffer *chosen; /* the same on the device side; NULL: they are only on the host */
  struct buffer *lists;        /* [n][top_k] struct entry, written */
  struct buffer *power;        /* [n] idx, written on both sides: rows of frames are multiplied by
                                * 2^power before routing (N.2); NULL: not multiplied */
  struct bad_score bad;        /* written: the lowest score that is not finite; row -1: none */
  int scores_only;             /* for measurements on a GPU: no selection, lists are undefined */
};
int device_route(struct device *dev, struct route_job *job);

/* Write lists into columns at .. at + top_k - 1 of the supports and scores, on the device side. */
struct scatter_job {
  const struct buffer *lists; /* [n][top_k] struct entry */
  idx n, top_k, at, s;
  struct buffer *atoms;       /* [n][s] idx */
  struct buffer *score;       /* [n][s] float */
  const struct buffer *power; /* `power` of the route_job that made the lists; may be NULL */
};
int device_lists_scatter(struct device *dev, const struct scatter_job *job);

#endif
