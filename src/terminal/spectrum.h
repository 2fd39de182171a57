/* SPDX-License-Identifier: BSD-3-Clause
 * The identifiability report: the spectrum of S by LAPACK, and nearly equal atoms.
 *
 * Floor: terminal; included by src/terminal only.  Not collective: rank 0 alone works. */
#ifndef TERMINAL_SPECTRUM_H
#define TERMINAL_SPECTRUM_H

#include "terminal/terminal_impl.h"

/* Report on S by LAPACK, which overwrites a copy of S. */
int terminal_spectrum(struct terminal *w);
/* *bytes <- the largest number of bytes that terminal_spectrum() takes, if S has the order
 * w->r->n_border. */
int terminal_spectrum_bytes(const struct terminal *w, gidx *bytes);

/* List the near duplicates among the atoms. */
int terminal_duplicates(struct terminal *w);
/* *bytes <- the largest number of bytes that terminal_duplicates() takes: on the host; on a GPU. */
int terminal_duplicates_bytes(const struct terminal *w, gidx *bytes);
int terminal_duplicates_device(const struct terminal *w, gidx *bytes);

#endif
