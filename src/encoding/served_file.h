/* SPDX-License-Identifier: BSD-3-Clause
 * A file of rows whose codes a server computes between requests.  The result is the one that
 * `encode` makes of the file.  The same functions begin, save, resume and publish it
 * (encode_files.h).
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
  const struct encode_task *encode; /* complete except for its rows */
  const struct backlog_list *list;
  const struct dictionary_input *dictionary;
  const char *identity; /* of a job of encode with the same options (job/identity.h) */
  int resume, force;
  real save_seconds; /* 0: no saves before the end */
  struct serve_facts facts;
  struct front *front;
  struct piece pieces[FILE_PIECES]; /* made by the first file, and used by all */
};

/* Open rows, which must have as many columns as the dictionary.  Call rows_input_close() after a
 * failure, too. */
int served_rows_open(struct rows_input *rows, const struct served_task *task, const char *name);

/* Encode a file, or the rows of it that an earlier run has left, until all are done or the server
 * ends.  *is_left <- 1: rows are left; the published file is then a part, as a stopped `encode`
 * leaves it. */
int served_file_encode(struct served_task *task, const struct backlog_entry *entry, int *is_left);

/* Call this after the last file. */
void served_files_free(struct served_task *task);

#endif
