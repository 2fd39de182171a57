/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta evaluate --truth and --labels: what atoms find, beside how well they describe.
 *
 * Floor: cli.  One rank. */
#ifndef CLI_EVALUATE_FEATURES_H
#define CLI_EVALUATE_FEATURES_H

#include "base/json.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "io/dictionary.h"
#include "io/encoder.h"
#include "io/supports_input.h"
#include "look/pairs.h"
#include "look/probing.h"
#include "look/recovery.h"
#include "model/rows.h"

enum { LABEL_SERIES = 3 }; /* a row's own label, that of the row before, and behind */

/* The inputs, and what was found of the dictionary. */
struct feature_inputs {
  const char *truth_name, *labels_name, *encoder_name; /* NULL: not given; borrowed */
  char *truth_path, *features_path; /* FILE:/truth and FILE:/truth/features; owned */
  struct supports_input truth;
  struct identity truth_of; /* the rows that it names */
  struct dictionary_input features;
  struct compare_result compared; /* the decoder's atoms beside the features */
  struct pairs pairs;             /* of them one to one */
  struct dictionary_input encoder_file;
  struct encoder_input encoder;
  real encoder_f1[LABEL_SERIES]; /* of the encoder's scores */
  gidx *labels;                  /* [n] */
  struct arena arena;
};
/* What was found of one set of codes. */
struct feature_measures {
  real mcc; /* of the dictionary, the same of all codes */
  struct recovery recovery;
  struct probing_result probing[LABEL_SERIES];
};

/* Open --truth and --labels, where they are given, of n rows called `rows`.  features_close()
 * follows also when it fails.  ERR_IO, ERR_INPUT: not of these rows, or not of p columns. */
int features_open(struct feature_inputs *f, const struct row_source *rows);
void features_close(struct feature_inputs *f);

/* Compare the decoder with the true features.  c: of one rank. */
int features_compare(struct feature_inputs *f, struct comm *c, const struct atom_source *decoder,
                     int threads);

/* Probe the scores of --encoder, where it is given. */
int features_probe(struct feature_inputs *f, const struct row_source *rows, int threads);

/* Measure one set of codes. */
int features_measure(const struct feature_inputs *f, const struct support_source *codes,
                     int threads, struct feature_measures *m);

/* A line for each figure, with a column for each of `count` sets of codes, and lines of the
 * encoder; the same as entries of one set, and of the encoder. */
void features_print(const struct feature_inputs *f, const struct feature_measures *m, int count);
void features_json(const struct feature_inputs *f, const struct feature_measures *m,
                   struct json *j);
void features_encoder_json(const struct feature_inputs *f, struct json *j);

#endif
