/* SPDX-License-Identifier: BSD-3-Clause
 * A grid is written as two numbers with an x between them. */
#include "encode/grid.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* *value <- the number, 1 to 999999, at the start of *at, which moves past it.  Returns 0 if there
 * is none. */
static int number_read(const char **at, long *value)
{
  char *end;
  if (!isdigit((unsigned char)**at)) return 0;
  *value = strtol(*at, &end, 10);
  int digits = (int)(end - *at);
  *at = end;
  return *value > 0 && digits <= 6;
}

/* text <- a list of the grids that `ranks` ranks can form; grids that have no room are left out. */
static void grids_list(int ranks, char *text, size_t capacity)
{
  size_t used = 0;
  for (int atoms = 1; atoms <= ranks && used + 32 < capacity; atoms++)
    if (ranks % atoms == 0)
      used += (size_t)snprintf(text + used, capacity - used, "%s%dx%d", used ? ", " : "",
                               ranks / atoms, atoms);
}

int grid_parse(const char *text, int ranks, int *groups)
{
  char grids[256];
  const char *at = text;
  long rows, atoms;
  *groups = 0;
  if (!strcmp(text, "auto")) return OK;
  grids_list(ranks, grids, sizeof grids);
  int is_grid = number_read(&at, &rows) && *at++ == 'x' && number_read(&at, &atoms) && !*at;
  CHECK(is_grid, ERR_USAGE,
        "'--grid' is '%s': give two numbers from 1 on, the number of groups and that of ranks in a "
        "group, as %s, or auto",
        text, grids);
  CHECK(rows * atoms == ranks, ERR_USAGE,
        "'--grid' is '%s', for %ld ranks, but there are %d: give %s, or auto", text, rows * atoms,
        ranks, grids);
  *groups = (int)rows;
  return OK;
}
