/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta verify --dense: the sparse side of training has the bits of dense products with zeros in
 * the other places (N.42).
 *
 * Floor: cli.  Not collective. */
#ifndef CLI_VERIFY_DENSE_H
#define CLI_VERIFY_DENSE_H

#include <stdio.h>

#include "base/options.h"
#include "base/types.h"
#include "device/device.h"

struct json;

struct verify_dense_options {
  int dense;
  const char *rows, *dictionary, *device, *cpu_variant, *kernels;
  idx threads;
};
enum { VERIFY_DENSE_ROWS = 7 };
extern const struct option_row verify_dense_rows[VERIFY_DENSE_ROWS];

/* Of a device by these options: kind, threads, variant and kernels. */
struct device_options verify_device_options(const struct verify_dense_options *o);

/* Compare on the codes of a folder's supports.h5, or those that its encoder finds of rows, and the
 * atoms of its dictionary.h5, or of another one; where it is NULL, on built-in ones.  Lines go to
 * out unless that is NULL, entries to the object that is open unless json is NULL.  *equal <- no
 * number differs.  ERR_INPUT: codes that are none, or frames. */
int verify_dense(const struct verify_dense_options *o, const char *folder, FILE *out,
                 struct json *json, int *equal);

#endif
