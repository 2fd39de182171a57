/* SPDX-License-Identifier: BSD-3-Clause
 * The result of a terminal pass: terminal.h5.
 *
 * Floor: io.  Used by rank 0 alone; not collective.  Objects: doc/formats.md. */
#ifndef IO_TERMINAL_H
#define IO_TERMINAL_H

#include "io/outputs.h"
#include "io/schema.h"
#include "model/terminal.h"

extern const struct file_kind terminal_kind;
int terminal_check(struct verify *v);                      /* terminal_check.c */
int terminal_show(const struct h5_file *f, FILE *out);     /* terminal_show.c */
int terminal_json(const struct h5_file *f, struct json *); /* terminal_show.c */

/* Write and publish. */
int terminal_write(const char *path, const struct terminal_result *r, real rho,
                   const struct run_fact *facts, int n_facts);

#endif
