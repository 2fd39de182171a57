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
  const char *rows;       /* a file of the rows that has /token; NULL: the rows of the run that
                           * wrote supports.h5, if they have /token */
  const char *tokens;     /* a file of tokens to use instead; or NULL */
  const char *vocabulary; /* the words of the tokens (vocabulary.h), or NULL */
  const char *attribution, *capture; /* as in struct sources_names */
  idx atom, count;                   /* count: the number of rows and of nearest atoms to show */
  idx sources;                       /* how many contributions to show per row */
};

struct json;
/* Print the page to out.  If json is not NULL, add the same contents to the open JSON object
 * instead.  ERR_INPUT: there is no such atom, or the files do not belong together; ERR_IO. */
int atom_inspect(const struct atom_request *request, FILE *out, struct json *json);

#endif
