/* SPDX-License-Identifier: BSD-3-Clause
 * The job of `sagitta serve`: the server with its backlog of files, its ledger and its address.
 *
 * Floor: encoding. */
#ifndef ENCODING_SERVE_JOB_H
#define ENCODING_SERVE_JOB_H

#include "encoding/backlog.h"
#include "encoding/serve_access.h"
#include "encoding/serve_ledger.h"
#include "io/mixer_capture.h"

/* Options; texts are borrowed, and NULL if they are not given. */
struct serve_settings {
  const char *policy, *ready, *backlog, *ledger;
  int has_rows; /* the ledger has rows of requests too */
  gidx ledger_bytes;
  int resume, force;
  real save_seconds, max_seconds; /* max_seconds 0: no limit */
  idx threads;
};

/* Allocate it on the heap, for the reason that struct run gives. */
struct serve_job {
  /* Set by the caller. */
  struct run *run;
  struct serve_settings settings;
  struct dictionary_input dictionary; /* open */
  struct mixer_input mixer;           /* open if task.mixer is set */
  struct row_source rows;             /* only their shape */
  struct encode_task encode;
  struct serve_task task;        /* the caller sets its knobs and limits */
  struct serve_access access;    /* open on rank 0 */
  struct identity_text identity; /* rank 0: of a job of encode with the same options, for files and
                                  * ledger */
  /* Of the job. */
  double accepted; /* when clients were first accepted, in seconds of the log */
  uint64_t hash;   /* of the dictionary */
  struct backlog backlog;
  struct serve_ledger ledger;
  struct serve *serve;
};

/* Serve until asked to stop, and write what was recorded.  Collective. */
int serve_job_run(struct serve_job *s);

#endif
