/* SPDX-License-Identifier: BSD-3-Clause
 * The two threads of an encode job that read rows and write results: the files worker reads, and
 * the writer writes.  If no thread is spare, as when a CPU computes, the files worker does both.
 *
 * Floor: encode; included by src/encode only. */
#ifndef ENCODE_FILES_H
#define ENCODE_FILES_H

#include "device/preprocess.h"
#include "encode/encode.h"

struct encode;

/* The next jobs of these threads: write a finished block, and read a share of a new one. */
struct file_job {
  const struct encode_task *task;
  gidx read_first;
  idx read_count;
  struct device *device;
  const struct buffer *read_into;
  gidx read_at;                  /* position in the buffer of the first row that is read */
  struct preprocess *preprocess; /* NULL: the device is a CPU */
  struct support_block write;    /* n = 0: nothing */
  struct phase *phases;          /* of the result */
  uint64_t *rows_terms;          /* <- sum of the hash terms of the rows that are read */
};

/* files_start() lets the threads write the finished block, and read this rank's share of the next
 * superblock.  files_wait() waits for both.  It returns this rank's status; if both fail, the
 * status of writing.  Not collective. */
int files_start(struct encode *e);
int files_wait(struct encode *e);

#endif
