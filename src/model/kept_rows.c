/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are read in runs; a run ends before the next row that is left out. */
#include "model/kept_rows.h"

#include "base/num.h"
#include "base/status.h"

/* How many left-out rows are before kept row i. */
static gidx out_before(const struct kept_rows *k, gidx i)
{
  gidx low = 0, high = k->count;
  while (low < high) {
    gidx middle = low + (high - low) / 2;
    if (k->out[middle] - middle <= i)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int kept_read(void *self, gidx first, idx count, float *out)
{
  const struct kept_rows *k = self;
  const struct row_source *rows = k->rows;
  for (idx done = 0, n; done < count; done += n) {
    gidx i = first + done, j = out_before(k, i), row = i + j;
    n = (idx)imin(count - done, j < k->count ? k->out[j] - row : count);
    float *x = out + (gidx)done * rows->p;
    TRY(rows->read(rows->self, row, n, x));
    TRY(rows_source_check(rows, x, row, n));
  }
  return OK;
}

void kept_rows_source(struct kept_rows *k, struct row_source *kept)
{
  *kept = *k->rows;
  kept->n = k->rows->n - k->count;
  kept->self = k;
  kept->read = kept_read;
  kept->make = NULL;
  kept->place = NULL;
}
