/* SPDX-License-Identifier: BSD-3-Clause
 * Files of safetensors: tensors by name, and a header in JSON that says where each begins.
 *
 * Floor: io.  It reads tensors of F16, BF16, F32 and F64.  The header is not trusted: before any
 * value is read, it is checked against the format, and the tensors must fill the file. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include "base/json_reader.h"
#include "io/flat_file.h"

struct tensor {
  const char *name, *dtype;
  int rank; /* shape has the first 3 dimensions only */
  gidx shape[3];
  gidx begin, end; /* byte offsets: from the end of the header, or from the start of a .npz */
};
struct tensor_table {
  struct tensor *list; /* [count], owned: by their bytes, or as in the directory of a .npz */
  gidx count, capacity;
  char *header;                  /* names point into it; owned */
  struct json_keys names, notes; /* of tensors, and of texts in __metadata__ */
};

/* Open a file and read its header.  Call flat_close() and tensors_free() also after a failure.
 * ERR_IO: cannot open; ERR_INPUT: the header is damaged. */
int tensors_open(struct flat_file *f, struct tensor_table *t, const char *path);
void tensors_free(struct tensor_table *t);

/* *type <- the type of a tensor's values.  Returns 0 if that type is not supported. */
int tensor_type(const struct tensor *t, enum h5_type *type);

/* The tensor with this name; NULL: there is none. */
const struct tensor *tensor_find(const struct tensor_table *t, const char *name);
/* Make f describe one tensor of a file that tensors_open() opened, so that flat_read() reads it.
 * ERR_INPUT: its type is not supported. */
int tensor_array(struct flat_file *f, const struct tensor *tensor);

/* Open a tensor as an array.  name NULL: the tensor called `standard`, or if there is none, the
 * only tensor.  Call flat_close() also after a failure.  ERR_INPUT: no such tensor; the message
 * lists the names. */
int safetensors_open(struct flat_file *f, const char *path, const char *name, const char *standard);

#endif
