/* SPDX-License-Identifier: BSD-3-Clause
 * Autoencoders in folders of other programs: SAELens, sparsify, dictionary_learning, Gemma Scope.
 *
 * Floor: io.  Not collective.  The settings of a folder determine its tensors, their layout and
 * their meaning; see the table of formats in doc/formats.md. */
#ifndef IO_AUTOENCODER_H
#define IO_AUTOENCODER_H

#include "base/memory.h"
#include "io/safetensors.h"
#include "io/settings.h"
#include "model/encoder.h"

struct autoencoder {
  const char *program;      /* "saelens", "sparsify", "dictionary_learning", "gemma_scope" */
  const char *architecture; /* as the settings name it */
  char settings_path[4096], weights_path[4096]; /* the first is "" without settings */
  char scaler_path[4096];                       /* the file with the factor, or "" */
  double factor; /* of activations, already folded into weights, decoder and mean; 1: none */
  struct settings settings, scaler;
  struct flat_file file; /* of the weights */
  struct tensor_table tensors;
  char dtype[8];                     /* of the weights: F32, F16 or BF16 */
  char threshold_dtype[8];           /* of the threshold, "" without one */
  int has_encoder;                   /* 1: `encoder` is set (model/encoder.h) */
  int pursues;                       /* it encodes by matching pursuit, without encoder weights */
  struct encoder encoder;            /* norm is NULL */
  float *decoder;                    /* [k][p]; one atom per row, as stored */
  float *mean;                       /* [p]; added to each reconstruction */
  float *weights, *bias, *threshold; /* of encoder */
  struct arena arena;
};
/* Read a folder.  Call autoencoder_close() also after a failure.  ERR_IO: a file cannot be opened;
 * ERR_INPUT: the folder has no autoencoder of these programs, a tensor is missing or has another
 * shape, or a dictionary and an encoder cannot compute what the autoencoder computes. */
int autoencoder_open(struct autoencoder *a, const char *folder);
int autoencoder_close(struct autoencoder *a);

#endif
