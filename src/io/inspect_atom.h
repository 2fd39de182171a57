/* SPDX-License-Identifier: BSD-3-Clause
 * The page of one atom: the number of rows that use it, its codes, its nearest atoms, and the rows
 * with its largest codes.
 *
 * Floor: io.  Not collective.
 *
 * Memory grows with the number of rows that use the atom, not with all rows. */
#ifndef IO_INSPECT_ATOM_H
#define IO_INSPECT_ATOM_H

#include <stdio.h>

#include "base/types.h"

struct atom_request {
  const char *folder;     /* has dictionary.h5 and supports.h5 */
  const char *rows;       /* a file of the rows with /token; NULL: the rows of the run, if they have
                           * it */
  const char *tokens;     /* a file of tokens to use instead; or NULL */
  const char *vocabulary; /* a text with a line for each token, or NULL */
  const char *attribution, *capture; /* as in struct sources_names */
  idx atom, count;                   /* count: how many rows and nearest atoms to show */
  idx sources;                       /* how many contributions to show per row */
};

struct json;
/* Print the page to out.  If json is not NULL, add it there instead, as entries of the open object.
 * ERR_INPUT: there is no such atom, or the files do not belong together; ERR_IO. */
int atom_inspect(const struct atom_request *request, FILE *out, struct json *json);

#endif
