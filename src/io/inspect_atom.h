/* SPDX-License-Identifier: BSD-3-Clause
 * The page of one atom: in how many rows it is, its codes, its nearest atoms, the rows where it is
 * strongest.
 *
 * Floor: io.  Not collective.
 *
 * Memory grows with the rows that the atom is in, and not with the others. */
#ifndef IO_INSPECT_ATOM_H
#define IO_INSPECT_ATOM_H

#include <stdio.h>

#include "base/types.h"

struct atom_request {
  const char *folder;     /* with dictionary.h5 and supports.h5 */
  const char *rows;       /* a file of the rows that has /token; NULL: that of the run, if any */
  const char *tokens;     /* a file of tokens alone, in its place; or NULL */
  const char *vocabulary; /* a text with a line for each token, or NULL */
  const char *attribution, *capture; /* as in struct sources_names */
  idx atom, count;                   /* how many rows and nearest atoms */
  idx sources;                       /* how many of a row */
};

struct json;
/* Print the page to out, or where json is not NULL add it as entries to the object that is open.
 * ERR_INPUT: there is no such atom, or the files do not belong together; ERR_IO. */
int atom_inspect(const struct atom_request *request, FILE *out, struct json *json);

#endif
