/* SPDX-License-Identifier: BSD-3-Clause
 * What the settings of an autoencoder say of its codes: its class, what it cannot be, and the
 * factor of its activations.
 *
 * Floor: io.  Not collective. */
#ifndef IO_AUTOENCODER_SETTINGS_H
#define IO_AUTOENCODER_SETTINGS_H

#include "io/settings.h"

/* Refuse settings with which a program computes what a dictionary and an encoder do not say, and
 * warn of those that are not known.  ERR_INPUT. */
int autoencoder_settings_check(const struct settings *s, const char *program);

/* *name <- the class that a program makes of such settings; NULL: they do not say.  ERR_INPUT: its
 * activation function is not known, or is another class's; it predicts other values than its
 * rows. */
int autoencoder_class_find(const struct settings *s, const char *program, const char **name);

/* *factor <- by what activations are multiplied before the encoder takes them, and reconstructions
 * divided; 1: nothing.  scaler[4096] <- the file that says it, "" without one, which stays open in
 * *file.  ERR_INPUT: activations are normalised in a way that the files do not hold. */
int autoencoder_factor_find(const struct settings *s, const char *program, const char *folder,
                            char *scaler, struct settings *file, double *factor);

#endif
