/* SPDX-License-Identifier: BSD-3-Clause
 * The ledger of a server: the data from which each step was planned, the rows that it took, and the
 * outcome of each request.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A table is int64 [count][columns], in the order of the enums.  Requests are numbered in the order
 * in which plans first saw them; inside a class (live or bulk) this is the order of arrival.  The
 * letters w, L, T', W and c are those of model/admission.h. */
#ifndef MODEL_LEDGER_H
#define MODEL_LEDGER_H

#include "model/admission.h"

enum ledger_step {
  STEP_NUMBER, /* n = 0, 1, ... */
  STEP_BEGUN,  /* all times are in ns since clients were first accepted */
  STEP_ENDED,
  STEP_WATCHED,   /* w */
  STEP_LIVE,      /* L: rows of live requests */
  STEP_TARGET,    /* T' */
  STEP_ALLOWANCE, /* W */
  STEP_CAP,       /* c */
  STEP_FILE_ROWS, /* rows of a file that were waiting */
  STEP_COLUMNS
};
/* Rows that a step took. */
enum ledger_part {
  PART_STEP,
  PART_REQUEST, /* its number; -1: the rows are of a file */
  PART_FILE,    /* its line in the list, from 1 on; 0: the rows are of a request */
  /* first row, counted in the request, or in the rows of the file that this server computes */
  PART_FIRST,
  PART_ROWS,
  PART_COLUMNS
};
enum ledger_request {
  REQUEST_CLIENT, /* a hash of its name */
  REQUEST_NUMBER, /* as the client numbers it */
  REQUEST_CLASS,  /* 0 live, 1 bulk */
  REQUEST_ROWS,
  REQUEST_ARRIVED,
  REQUEST_ANSWERED, /* -1: the ledger ended before the answer */
  REQUEST_SEEN,     /* the first step whose plan had it in a queue */
  REQUEST_GONE,     /* the first later step whose plan did not have it in a queue; -1: none */
  REQUEST_STATUS,   /* 0: it has results; otherwise its error code (doc/live.md) */
  REQUEST_TERMS,    /* fingerprint of the reply: of its supports, scores and codes */
  REQUEST_COLUMNS
};
enum { LEDGER_TABLES = 3 };

struct ledger_table {
  gidx *values; /* [count][columns of the table] */
  gidx count, capacity;
};
struct ledger {
  struct admission_knobs knobs;
  struct ledger_table steps, parts, requests;
};

/* Plan every step again, from the requests and rows of files that were waiting, and compare.
 * ERR_INPUT names the first step or request that differs; ERR_MEMORY. */
int ledger_check(const struct ledger *ledger);

#endif
