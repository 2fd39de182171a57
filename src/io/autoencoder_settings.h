/* SPDX-License-Identifier: BSD-3-Clause
 * Read the settings of an autoencoder that another program trained: whether it can be imported, its
 * class, and the factor by which it scales activations.
 *
 * Floor: io.  Not collective. */
#ifndef IO_AUTOENCODER_SETTINGS_H
#define IO_AUTOENCODER_SETTINGS_H

#include "io/settings.h"

/* Check whether a dictionary and an encoder can compute what the autoencoder computes.  ERR_INPUT:
 * they cannot, for example with a skip connection.  Warns of settings that are not known.  program:
 * "saelens", "sparsify" or another. */
int autoencoder_settings_check(const struct settings *s, const char *program);

/* *name <- the class of the autoencoder that `program` builds from the settings; NULL: the settings
 * do not name it.  ERR_INPUT: the activation function is not known, or belongs to another class, or
 * the autoencoder does not reconstruct its rows. */
int autoencoder_class_find(const struct settings *s, const char *program, const char **name);

/* *factor <- the factor: the program multiplies activations by it before it encodes them, and
 * divides reconstructions by it; 1: it does neither.  scaler[4096] <- the path of the file that has
 * the factor, "" if there is none; the file stays open in *file.  ERR_INPUT: activations are
 * normalised in a way that the files do not describe. */
int autoencoder_factor_find(const struct settings *s, const char *program, const char *folder,
                            char *scaler, struct settings *file, double *factor);

#endif
