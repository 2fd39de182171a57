/* SPDX-License-Identifier: BSD-3-Clause
 * A file of rows whose codes a server computes between requests: the result is what `encode` makes
 * of it, begun, saved, resumed and published by the same functions (encode_files.h).
 *
 * Floor: encoding.  One rank, in a thread that alone uses files (serve/feed.h). */
#ifndef ENCODING_SERVED_FILE_H
#define ENCODING_SERVED_FILE_H

#include "encode/encode.h"
#include "encoding/backlog_list.h"
#include "io/dictionary.h"
#include "io/rows.h"
#include "job/run.h"
#include "serve/feed.h"
#include "serve/serve.h"

/* What all files have in common; pointers are borrowed. */
struct served_task {
  const struct run *run;            /* of the server */
  const struct encode_task *encode; /* but for rows */
  const struct backlog_list *list;
  const struct dictionary_input *dictionary;
  const char *identity; /* of such a job of encode (job/identity.h) */
  int resume, force;
  real save_seconds; /* 0: nothing is saved before the end */
  struct serve_facts facts;
  struct front *front;
  struct piece pieces[FILE_PIECES]; /* made by the first file that needs them, for all */
};

/* Open rows with as many columns as the dictionary has; rows_input_close() follows also when it
 * fails. */
int served_rows_open(struct rows_input *rows, const struct served_task *task, const char *name);

/* Encode a file, or what an earlier run has left of it, until the server ends.  *is_left <- some
 * rows are to be done: what was published is the part that a stopped `encode` leaves. */
int served_file_encode(struct served_task *task, const struct backlog_entry *entry, int *is_left);

/* No more files. */
void served_files_free(struct served_task *task);

#endif
