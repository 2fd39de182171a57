/* SPDX-License-Identifier: BSD-3-Clause
 * Fixed columns, so that two logs can be compared line by line. */
#include "cli/report.h"

#include <math.h>
#include <stdio.h>
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
  gidx sums[FILTER_PATHS + 1];
  double *all = calloc((size_t)c->size, sizeof *all);
  CHECK(all, ERR_MEMORY, "cannot allocate %d times", c->size);
  struct spread most, part;
  memcpy(sums, f->rows, sizeof f->rows);
  sums[FILTER_PATHS] = f->candidates;
  TRY(comm_sum(c, sums, LENGTH(sums)));
  TRY(spread_over_ranks(c, (double)f->most, all, &most));
  for (int i = 0; i < FILTER_STAGES; i++) {
    TRY(spread_over_ranks(c, f->seconds[i], all, &part));
    f->seconds[i] = part.sum;
  }
  free(all);
  memcpy(f->rows, sums, sizeof f->rows);
  f->candidates = sums[FILTER_PATHS];
  f->most = (gidx)most.most;
  return OK;
}

int report_filter(struct comm *c, struct filter_counts *counts)
{
  static const char *const reasons[FILTER_PATHS] = {
      [FILTER_LIST] = "the bound leaves too many candidates",
      [FILTER_SCORE] = "their scores may overflow",
      [FILTER_GUESS] = "the guess from a sample was too high",
      [FILTER_SMALL] = "they are zeros, or hardly more",
  };
  TRY(filter_sum(c, counts));
  gidx certified = counts->rows[FILTER_CERTIFIED];
  gidx rows = 0;
  for (int i = 0; i < FILTER_PATHS; i++) rows += counts->rows[i];
  if (rows == 0) return OK;
  log_info("filter     certified %lld of %lld routings of a row, candidates each: %.1f, at most "
           "%lld",
           (long long)certified, (long long)rows,
           certified ? (double)counts->candidates / (double)certified : 0, (long long)counts->most);
  for (int i = 0; i < FILTER_PATHS; i++)
    if (reasons[i] && counts->rows[i])
      log_info("filter     %lld took the exact path: %s", (long long)counts->rows[i], reasons[i]);
  char line[256] = "";
  for (int i = 0, used = 0; i < FILTER_STAGES; i++)
    if (counts->seconds[i] > 0)
      used += snprintf(line + used, sizeof line - (size_t)used, "%s%s %.3f", used ? ", " : "",
                       filter_stage_names[i], counts->seconds[i]);
  log_info("filter     seconds, all devices and threads together: %s", line);
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
