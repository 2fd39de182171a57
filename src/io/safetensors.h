/* SPDX-License-Identifier: BSD-3-Clause
 * Files of safetensors: tensors by name, and a header in JSON that says where each begins.
 *
 * Floor: io.  Read are tensors of F16, BF16, F32 and F64.  The header is not trusted: all of it has
 * to be as the format says, and the tensors have to fill the file, before anything is read. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include "base/json_reader.h"
#include "io/flat_file.h"

struct tensor {
  const char *name, *dtype;
  int rank; /* shape is known up to 3 */
  gidx shape[3];
  gidx begin, end; /* bytes behind the header */
};
struct tensor_table {
  struct tensor *list; /* [count], in the order of the file's bytes; owned */
  gidx count, capacity;
  char *header;                  /* names point into it; owned */
  struct json_keys names, notes; /* of tensors, and of texts about them */
};

/* Open a file and read its header.  flat_close() and tensors_free() follow also when it fails.
 * ERR_IO: cannot open; ERR_INPUT: the header is damaged. */
int tensors_open(struct flat_file *f, struct tensor_table *t, const char *path);
void tensors_free(struct tensor_table *t);

/* *type <- that of a tensor's values; 0 when it is not one that is read here. */
int tensor_type(const struct tensor *t, enum h5_type *type);

/* The tensor of a name; NULL: there is none. */
const struct tensor *tensor_find(const struct tensor_table *t, const char *name);
/* Let a file that tensors_open() opened stand for an array of it.  ERR_INPUT: its
 * values are of a type that is not read. */
int tensor_array(struct flat_file *f, const struct tensor *tensor);

/* Open a tensor as an array.  With name NULL: the one called `standard`, else the only one.
 * flat_close() follows also when it fails.  ERR_INPUT names those that are there. */
int safetensors_open(struct flat_file *f, const char *path, const char *name, const char *standard);

#endif
