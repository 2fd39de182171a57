/* SPDX-License-Identifier: BSD-3-Clause
 * The pages of a .npy file and of one of safetensors: what they hold, and what that is to a job.
 *
 * Floor: io. */
#ifndef IO_INSPECT_NPY_H
#define IO_INSPECT_NPY_H

#include <stdio.h>

/* All values are read, and the page says whether they can be used.  ERR_IO, ERR_INPUT: as of
 * npy_open(). */
int npy_inspect(const char *path, FILE *out);

/* ERR_IO, ERR_INPUT: as of tensors_open(). */
int tensors_inspect(const char *path, FILE *out);

/* The same as entries of the object that is open (inspect_json.h). */
struct json;
int npy_json(const char *path, struct json *json);
int tensors_json(const char *path, struct json *json);

#endif
