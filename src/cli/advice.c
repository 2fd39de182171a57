/* SPDX-License-Identifier: BSD-3-Clause
 * One function for each warning: its condition, and what to do. */
#include "cli/advice.h"

#include "base/log.h"

void advice_shape(const struct row_source *rows)
{
  if (rows->n >= rows->p) return;
  log_warn("'%s' has %lld rows of %d columns, fewer rows than columns: are they transposed?  A "
           "sample is a row: then save them as rows.T",
           rows->name, (long long)rows->n, rows->p);
}

void advice_top_s(idx top_s, idx k)
{
  if (top_s <= k) return;
  log_warn("top-s is %d, there are %d atoms: each row gets %d", top_s, k, k);
}

void advice_explained(real explained, const char *what)
{
  if (!(explained < 0)) return;
  log_warn("the explained variance of %s is %.6g, below 0: the mean of the rows describes them "
           "better; are rows and dictionary of the same layer, scale and mean?",
           what, explained);
}

void advice_metrics(const struct metrics *m, const char *what)
{
  advice_explained(m->explained_variance, what);
}
