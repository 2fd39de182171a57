/* SPDX-License-Identifier: BSD-3-Clause
 * Autoencoders in folders of other programs: SAELens, sparsify, dictionary_learning, Gemma Scope.
 *
 * Floor: io.  Not collective.  Which tensors a folder has, how they lie and what they mean follows
 * from its settings, as the table of formats in doc/formats.md says. */
#ifndef IO_AUTOENCODER_H
#define IO_AUTOENCODER_H

#include "base/memory.h"
#include "io/safetensors.h"
#include "io/settings.h"
#include "model/encoder.h"

struct autoencoder {
  const char *program;      /* "saelens", "sparsify", "dictionary_learning", "gemma_scope" */
  const char *architecture; /* as its settings have it */
  char settings_path[4096], weights_path[4096]; /* the first "" where there is no such file */
  char scaler_path[4096];                       /* of the factor, as the two before */
  double factor; /* of activations, which is folded into weights, decoder and mean; 1: none */
  struct settings settings, scaler;
  struct flat_file file; /* of the weights */
  struct tensor_table tensors;
  char dtype[8];                     /* of its values: F32, F16 or BF16 */
  char threshold_dtype[8];           /* of its threshold, "" without one */
  int has_encoder;                   /* one of those of model/encoder.h */
  int pursues;                       /* matching pursuit, which is no encoder of weights */
  struct encoder encoder;            /* norm is NULL */
  float *decoder;                    /* [k][p]; as it is stored, an atom a row */
  float *mean;                       /* [p]; what is added to each reconstruction */
  float *weights, *bias, *threshold; /* of encoder */
  struct arena arena;
};
/* Read a folder.  autoencoder_close() follows also when it fails.  ERR_IO: a file cannot be opened;
 * ERR_INPUT: it is no such folder, a tensor is missing or of another shape, or what it computes
 * cannot be said with a dictionary. */
int autoencoder_open(struct autoencoder *a, const char *folder);
int autoencoder_close(struct autoencoder *a);

#endif
