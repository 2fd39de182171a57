/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta verify FOLDER --rows ROWS: the supports of a folder are those that the encoder of its
 * dictionary gives the rows, whoever solved their codes.
 *
 * Floor: cli.  Not collective. */
#ifndef CLI_VERIFY_SUPPORTS_H
#define CLI_VERIFY_SUPPORTS_H

#include <stdio.h>

#include "device/device.h"

struct verify_supports {
  const char *folder, *rows;
  struct device_options device; /* kind, threads, variant, kernels */
  FILE *out;                    /* a line goes there; NULL: none */
};
/* Compare the first rows, 65,536 of them at most.  ERR_USAGE: the supports are not an encoder's;
 * ERR_INPUT names the first row that has other atoms or scores. */
int verify_supports(const struct verify_supports *v);

#endif
