/* SPDX-License-Identifier: BSD-3-Clause
 * Lines have fixed columns, so that two logs can be compared line by line. */
#include "cli/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/status.h"
#include "base/text.h"
#include "io/rates.h"
#include "model/advice.h"
#include "job/summary.h"

void report_present(gidx needed, gidx present)
{
  printf("present     %.1f MB a rank%s\n", 1e-6 * (double)present,
         needed > present ? ", less than is needed: the job may be refused" : "");
}

int report_rates_check(const char *path, int dry_run)
{
  CHECK(!path || dry_run, ERR_USAGE,
        "'--rates' goes only with '--dry-run', which says how long the job would take: add "
        "'--dry-run'");
  return OK;
}

/* Append to r->differ. */
static void differ_add(struct plan_rates *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void differ_add(struct plan_rates *r, const char *format, ...)
{
  size_t used = strlen(r->differ);
  va_list arguments;
  if (used) used += (size_t)snprintf(r->differ + used, sizeof r->differ - used, ", ");
  if (used >= sizeof r->differ) return;
  va_start(arguments, format);
  vsnprintf(r->differ + used, sizeof r->differ - used, format, arguments);
  va_end(arguments);
}

int report_rates_read(const struct run *run, const char *path, idx threads, const char *device,
                      struct plan_rates *r, struct times *t)
{
  char cpu[sizeof r->rates.cpu];
  const struct rates *of = &r->rates;
  *r = (struct plan_rates){.path = path};
  *t = (struct times){.threads = threads};
  if (!path) return OK;
  TRY(rates_read(&r->rates, path));
  proc_cpu(cpu, sizeof cpu);
  t->overlap = strcmp(of->kind, "cuda") == 0;
  if (strcmp(cpu, of->cpu) != 0) differ_add(r, "another CPU, '%s'", of->cpu);
  if (strcmp(device, "auto") != 0 && strcmp(device, of->kind) != 0)
    differ_add(r, "device %s", of->kind);
  if (of->ranks != run->comm.size) differ_add(r, "ranks %d", of->ranks);
  if (of->threads != threads) differ_add(r, "threads %d", of->threads);
  if (strcmp(of->version, run->program->version) != 0 ||
      strcmp(of->revision, run->program->revision) != 0)
    differ_add(r, "version %s %s", of->version, of->revision);
  times_add(t, "start", of->start);
  return OK;
}

static int times_check(const struct plan_rates *r, const struct times *t)
{
  for (int i = 0; i < t->count; i++)
    CHECK(isfinite(t->lines[i].seconds), ERR_INPUT,
          "'%s' has no rate for the time of '%s': measure again with this version and as many "
          "ranks; on more than 64 ranks refit and fit --update atoms have no rates",
          r->path, t->lines[i].name);
  return OK;
}

int report_times(const struct plan_rates *r, const struct times *t)
{
  if (!r->path) {
    printf("time        not known without --rates, which `sagitta-bench rates --json` measures\n");
    return OK;
  }
  TRY(times_check(r, t));
  printf("time        %.2f s:", times_total(t));
  for (int beside = 0; beside < 2; beside++)
    for (int i = 0, n = 0; i < t->count; i++)
      if (t->lines[i].beside == beside && t->lines[i].seconds > 0)
        printf("%s %s %.2f",
               n++      ? ","
               : beside ? "; beside them"
                        : "",
               t->lines[i].name, t->lines[i].seconds);
  printf("\n");
  text_print(stdout, "rates       of '%s'%s%s\n", r->path,
             *r->differ ? ", measured with other conditions: " : "", r->differ);
  return OK;
}

int report_times_json(const struct plan_rates *r, const struct times *t, struct json *j)
{
  if (!r->path) return OK;
  TRY(times_check(r, t));
  json_object(j, "seconds");
  json_real(j, "all", times_total(t));
  for (int i = 0; i < t->count; i++) json_real(j, t->lines[i].name, t->lines[i].seconds);
  json_end(j);
  json_text(j, "rates", r->path);
  json_text(j, "rates_differ", *r->differ ? r->differ : NULL);
  return OK;
}

struct spread {
  double min, mean, max, sum;
};

/* *s <- smallest, mean, largest and sum of the values of all ranks; all[c->size] is work space.
 * Collective. */
static int spread_over_ranks(struct comm *c, double value, double *all, struct spread *s)
{
  TRY(comm_allgather_real(c, value, all));
  *s = (struct spread){.min = all[0], .max = all[0]};
  for (int r = 0; r < c->size; r++) {
    s->min = fmin(s->min, all[r]);
    s->max = fmax(s->max, all[r]);
    s->sum += all[r];
  }
  s->mean = s->sum / c->size;
  return OK;
}

static int times_alloc(int count, double **all)
{
  *all = calloc((size_t)count, sizeof **all);
  CHECK(*all, ERR_MEMORY, "cannot allocate %d times", count);
  return OK;
}

/* Allocate (*all)[c->size] on all ranks; if one fails, all fail. */
static int times_make(struct comm *c, double **all)
{
  int status = comm_agree(c, times_alloc(c->size, all));
  if (status) free(*all);
  return status;
}

/* Where a phase ran: "background", its device, or "" if it has none. */
static const char *phase_on(const struct phase *p)
{
  return p->background ? "background" : p->device ? p->device : "";
}

int report_phases(struct comm *c, const struct phase *phases, int count)
{
  double *all;
  TRY(times_make(c, &all));
  log_info("phase       calls   least s    mean s    most s        rate      on");
  for (int i = 0; i < count; i++) {
    struct spread seconds, work, calls;
    TRY(spread_over_ranks(c, phases[i].seconds, all, &seconds));
    TRY(spread_over_ranks(c, phases[i].work, all, &work));
    TRY(spread_over_ranks(c, (double)phases[i].calls, all, &calls));
    if (calls.max == 0) continue;
    summary_phase_add(&(struct phase_line){.name = phases[i].name,
                                           .unit = phases[i].unit,
                                           .on = phase_on(&phases[i]),
                                           .calls = (gidx)calls.max,
                                           .least = seconds.min,
                                           .mean = seconds.mean,
                                           .most = seconds.max,
                                           .work = work.sum});
    const char *on = phase_on(&phases[i]);
    if (phases[i].unit && seconds.max > 0 && work.sum > 0)
      log_info("%-9s %7.0f %9.3f %9.3f %9.3f %9.2f %s/s%s%s", phases[i].name, calls.max,
               seconds.min, seconds.mean, seconds.max, 1e-9 * work.sum / seconds.max,
               phases[i].unit, *on ? "  " : "", on);
    else
      log_info("%-9s %7.0f %9.3f %9.3f %9.3f%s%s", phases[i].name, calls.max, seconds.min,
               seconds.mean, seconds.max, *on ? "  " : "", on);
  }
  free(all);
  return OK;
}

int report_counts(struct comm *c, struct device_counts *counts)
{
  gidx sums[] = {counts->kernels, counts->put, counts->got, counts->declined, counts->retried};
  TRY(comm_sum(c, sums, LENGTH(sums)));
  *counts = (struct device_counts){sums[0], sums[1], sums[2], sums[3], sums[4]};
  if (counts->kernels > 0)
    log_info("GPU: %.0f kernels, %.3f GB to and %.3f GB from the device", (double)counts->kernels,
             1e-9 * (double)counts->put, 1e-9 * (double)counts->got);
  if (counts->declined > 0)
    log_info("GPU: %lld systems are beyond its kernels and were solved by CPUs",
             (long long)counts->declined);
  if (counts->retried > 0)
    log_info("GPU: %lld systems failed, and were examined by CPUs", (long long)counts->retried);
  return OK;
}

/* Join the counts of all ranks: f->max <- the largest, all others <- the sum.  Collective. */
static int screen_sum(struct comm *c, struct screen_counts *f)
{
  gidx sums[SCREEN_PATHS + 1];
  double *all;
  struct spread max, part;
  TRY(times_make(c, &all));
  memcpy(sums, f->rows, sizeof f->rows);
  sums[SCREEN_PATHS] = f->candidates;
  TRY(comm_sum(c, sums, LENGTH(sums)));
  TRY(spread_over_ranks(c, (double)f->max, all, &max));
  for (int i = 0; i < SCREEN_STAGES; i++) {
    TRY(spread_over_ranks(c, f->seconds[i], all, &part));
    f->seconds[i] = part.sum;
  }
  free(all);
  memcpy(f->rows, sums, sizeof f->rows);
  f->candidates = sums[SCREEN_PATHS];
  f->max = (gidx)max.max;
  return OK;
}

int report_filter(struct comm *c, struct screen_counts *counts)
{
  static const char *const reasons[SCREEN_PATHS] = {
      [SCREEN_LIST] = "the bound leaves too many candidates",
      [SCREEN_SCORE] = "their scores may overflow",
      [SCREEN_ESTIMATE] = "the guess from a sample was too high",
      [SCREEN_SMALL] = "the rows are zeros, or hardly more",
  };
  TRY(screen_sum(c, counts));
  gidx certified = counts->rows[SCREEN_CERTIFIED];
  gidx rows = 0;
  for (int i = 0; i < SCREEN_PATHS; i++) rows += counts->rows[i];
  if (rows == 0) return OK;
  log_info(
      "filter     certified %lld of %lld routings of a row, candidates each: %.1f, at most %lld",
      (long long)certified, (long long)rows,
      certified ? (double)counts->candidates / (double)certified : 0, (long long)counts->max);
  for (int i = 0; i < SCREEN_PATHS; i++)
    if (reasons[i] && counts->rows[i])
      log_info("filter     %lld routings took the direct path: %s", (long long)counts->rows[i],
               reasons[i]);
  char line[256] = "";
  for (int i = 0, used = 0; i < SCREEN_STAGES; i++)
    if (counts->seconds[i] > 0)
      used += snprintf(line + used, sizeof line - (size_t)used, "%s%s %.3f", used ? ", " : "",
                       screen_stage_names[i], counts->seconds[i]);
  log_info("filter     seconds, all devices and threads together: %s", line);
  return OK;
}

void report_metrics(const struct metrics *m, int has_codes)
{
  summary_metrics_set(m, has_codes);
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
  if (has_codes) advice_metrics(m, "these rows");
}
