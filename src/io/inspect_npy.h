/* SPDX-License-Identifier: BSD-3-Clause
 * The pages of `inspect` about a .npy file and a safetensors file: the contents, and how a job can
 * use them.
 *
 * Floor: io. */
#ifndef IO_INSPECT_NPY_H
#define IO_INSPECT_NPY_H

#include <stdio.h>

/* Read all values, and print whether a job can use them.  ERR_IO, ERR_INPUT: as for npy_open(). */
int npy_inspect(const char *path, FILE *out);

/* ERR_IO, ERR_INPUT: as for tensors_open(). */
int tensors_inspect(const char *path, FILE *out);

/* Add the same contents as entries of the open JSON object (inspect_json.h). */
struct json;
int npy_json(const char *path, struct json *json);
int tensors_json(const char *path, struct json *json);

#endif
