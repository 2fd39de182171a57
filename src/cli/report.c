/* SPDX-License-Identifier: BSD-3-Clause
 * Fixed columns, so that two logs can be compared line by line. */
#include "cli/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"

struct spread {
  double least, mean, most, sum;
};

static int spread_over_ranks(struct comm *c, double value, double *all, struct spread *s)
{
  TRY(comm_collect_real(c, value, all));
  *s = (struct spread){.least = all[0], .most = all[0]};
  for (int r = 0; r < c->size; r++) {
    s->least = fmin(s->least, all[r]);
    s->most = fmax(s->most, all[r]);
    s->sum += all[r];
  }
  s->mean = s->sum / c->size;
  return OK;
}

int report_phases(struct comm *c, const struct phase *phases, int count)
{
  double *all = calloc((size_t)c->size, sizeof *all);
  CHECK(all, ERR_MEMORY, "cannot allocate %d times", c->size);
  log_info("phase      calls   least s    mean s    most s        rate      on");
  for (int i = 0; i < count; i++) {
    struct spread seconds, work, calls;
    TRY(spread_over_ranks(c, phases[i].seconds, all, &seconds));
    TRY(spread_over_ranks(c, phases[i].work, all, &work));
    TRY(spread_over_ranks(c, (double)phases[i].calls, all, &calls));
    if (calls.most == 0) continue;
    const char *on = phases[i].behind ? "behind" : phases[i].device ? phases[i].device : "";
    if (phases[i].unit && seconds.most > 0 && work.sum > 0)
      log_info("%-8s %7.0f %9.3f %9.3f %9.3f %9.2f %s/s%s%s", phases[i].name, calls.most,
               seconds.least, seconds.mean, seconds.most, 1e-9 * work.sum / seconds.most,
               phases[i].unit, *on ? "  " : "", on);
    else
      log_info("%-8s %7.0f %9.3f %9.3f %9.3f%s%s", phases[i].name, calls.most, seconds.least,
               seconds.mean, seconds.most, *on ? "  " : "", on);
  }
  free(all);
  return OK;
}

static int filter_sum(struct comm *c, struct filter_counts *f)
{
  gidx sums[FILTER_PATHS + 1] = {f->rows[0], f->rows[1], f->rows[2], f->candidates};
  double seconds[] = {f->filter_seconds, f->exact_seconds, f->left_seconds};
  double *all = calloc((size_t)c->size, sizeof *all);
  CHECK(all, ERR_MEMORY, "cannot allocate %d times", c->size);
  struct spread most, part;
  TRY(comm_sum(c, sums, LENGTH(sums)));
  TRY(spread_over_ranks(c, (double)f->most, all, &most));
  for (int i = 0; i < LENGTH(seconds); i++) {
    TRY(spread_over_ranks(c, seconds[i], all, &part));
    seconds[i] = part.sum;
  }
  free(all);
  memcpy(f->rows, sums, sizeof f->rows);
  f->candidates = sums[FILTER_PATHS];
  f->most = (gidx)most.most;
  f->filter_seconds = seconds[0];
  f->exact_seconds = seconds[1];
  f->left_seconds = seconds[2];
  return OK;
}

int report_filter(struct comm *c, struct filter_counts *counts)
{
  TRY(filter_sum(c, counts));
  gidx certified = counts->rows[FILTER_CERTIFIED];
  gidx rows = certified + counts->rows[FILTER_LIST] + counts->rows[FILTER_SCORE];
  if (rows == 0) return OK;
  log_info("filter     certified %lld of %lld routings of a row, candidates each: %.1f, at most "
           "%lld; thread seconds: filter %.3f, candidates %.3f, exact path %.3f",
           (long long)certified, (long long)rows,
           certified ? (double)counts->candidates / (double)certified : 0, (long long)counts->most,
           counts->filter_seconds, counts->exact_seconds, counts->left_seconds);
  if (counts->rows[FILTER_LIST])
    log_info("filter     %lld took the exact path: the bound leaves too many candidates",
             (long long)counts->rows[FILTER_LIST]);
  if (counts->rows[FILTER_SCORE])
    log_info("filter     %lld took the exact path: their scores may overflow",
             (long long)counts->rows[FILTER_SCORE]);
  return OK;
}

void report_metrics(const struct metrics *m, int has_codes)
{
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    const char *at = (const char *)m + row->offset;
    if (row->needs_codes && !has_codes) continue;
    if (row->is_integer) {
      gidx value;
      memcpy(&value, at, sizeof value);
      log_info("%-22s %lld", row->name, (long long)value);
    } else {
      real value;
      memcpy(&value, at, sizeof value);
      if (isnan(value))
        log_info("%-22s not computed", row->name);
      else
        log_info("%-22s %.6g", row->name, value);
    }
  }
}
