/* SPDX-License-Identifier: BSD-3-Clause
 * The remaining time is forecast from the last sweep, the memory of the job from shapes. */
#include "cli/fit_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/metrics.h"
#include "io/supports.h"
#include "model/advice.h"
#include "cli/fit_atoms.h"
#include "cli/report.h"
#include "encode/times.h"
#include "fit/times.h"
#include "job/summary.h"
#include "model/split.h"

static const struct {
  const char *name, *says;
} updates[] = {
    [UPDATE_AUTO] = {"auto", ""},
    [UPDATE_ATOMS] = {"atoms", "atoms: each by its own system, class after class"},
    [UPDATE_JOINT] = {"joint", "joint: all atoms at once, by the normal equations"},
    [UPDATE_CONJUGATE] = {"conjugate", "conjugate: all atoms at once, by conjugate gradients"},
};

const char *fit_update_name(enum fit_update update)
{
  return updates[update].name;
}

const char *fit_update_says(enum fit_update update)
{
  return updates[update].says;
}

enum fit_update fit_update_of(const char *name)
{
  int i = LENGTH(updates) - 1;
  while (i > 0 && strcmp(name, updates[i].name) != 0) i--;
  return (enum fit_update)i;
}

/* Forecast the seconds from the last sweep to the end of the job.  spent: the seconds of this
 * sweep, which reads one part of the rows.  All rows are coded, which takes at most as long as a
 * sweep of all parts.  supports.h5 is published at the pace of the sweeps, but at least at
 * LEAST_PACE, since the pace of small files says little about large ones.  Two more files are
 * published, each in the average time of a sweep's file. */
static real end_seconds(const struct fit_job *j, const struct fit_sweep *s, real spent)
{
  static const real LEAST_PACE = 1e8; /* bytes per second: hashed, written, read back and synced */
  const struct phase *write = &j->written;
  real rows = (real)j->rows.source.n, entry = sizeof(idx) + sizeof(float);
  real pass = spent * (real)s->parts * rows / (real)s->fitted_rows;
  if (write->calls == 0) return pass;
  real pace = fmin(write->seconds / write->work, 1 / LEAST_PACE);
  return pass + 2 * write->seconds / (real)write->calls + rows * j->files.top_s * entry * pace;
}

/* The memory of the steps of the job on rank 0, and the sizes of its files, in bytes. */
struct plan {
  gidx encoding, seeds, detectors, most;
  gidx dictionary, state, supports, disk; /* disk: the most at one time */
};

/* A new file exists beside the file that it replaces, until the new one is complete.  In a fit
 * without minibatches sweep.h5 is on disk, too. */
static gidx disk_bytes(const struct plan *p, const struct fit_forecast *f, gidx atoms)
{
  gidx sweep = f->parts == 1 ? atoms * (gidx)sizeof(real) : 0;
  gidx again = imax(imax(p->dictionary, p->state) + sweep, p->supports);
  return p->dictionary + p->state + again;
}

static int plan_find(const struct fit_job *j, const struct fit_forecast *f, struct plan *p)
{
  const struct encode_task *t = &j->encode;
  gidx k = t->atoms->k, atoms = k * t->atoms->p, item = (gidx)sizeof(float);
  const struct supports_shape shape = {
      .n = t->rows->n, .k = t->atoms->k, .s = t->top_s, .d = 1, .p = t->atoms->p, .has_codes = 1};
  struct encode_memory m;
  TRY(encode_memory(t, j->run->comm.size, 0, &m));
  TRY(fit_detectors_bytes(j, &p->detectors));
  p->encoding = memory_program() + m.host + j->task.beside;
  if (p->detectors) p->detectors += memory_program() + j->task.beside;
  p->seeds = j->o->seeds > 1 ? memory_program() + k * k * item + j->task.beside : 0;
  p->most = imax(imax(f->m.total, p->encoding), imax(p->seeds, p->detectors));
  p->dictionary = matrix_bytes(atoms) * (1 + (j->o->detectors != 0));
  p->state = matrix_bytes(atoms);
  if (f->parts > 1)
    p->state += (f->update == UPDATE_CONJUGATE ? k : k * k + atoms) * (gidx)sizeof(real);
  p->supports = supports_bytes(&shape);
  p->disk = disk_bytes(p, f, atoms);
  return OK;
}

static void plan_json(struct json *o, const struct fit_job *j, const struct fit_forecast *f,
                      const struct plan *p)
{
  const struct refit_memory *m = &f->m;
  json_text(o, "update", fit_update_name(f->update));
  json_long(o, "rows", f->fitted);
  json_long(o, "held_rows", f->held);
  json_long(o, "columns", j->rows.source.p);
  json_long(o, "parts", f->parts);
  json_long(o, "part_rows", f->part_rows);
  json_long(o, "rank_rows", f->rank_rows);
  json_long(o, "atoms", j->task.k);
  json_long(o, "top_s", imin(j->task.top_s, j->task.k));
  json_long(o, "encode_s", j->encode.top_s);
  json_long(o, "sweeps", j->task.sweeps * f->parts);
  json_object(o, "multiply_adds");
  json_real(o, "routing", f->routing);
  json_real(o, "descent", f->descent);
  json_real(o, "encoding", encode_work(&j->encode));
  json_end(o);
  json_object(o, "rank_bytes");
  json_long(o, "most", p->most);
  json_long(o, "fit", m->total);
  json_long(o, "rows", m->held.rows);
  json_long(o, "supports", m->held.supports);
  json_long(o, "atoms", m->held.frames + m->part);
  json_long(o, "coding", f->beside);
  json_long(o, "reading", m->load);
  json_long(o, "classes", m->classes);
  json_long(o, "update", m->batch);
  json_long(o, "sweep_end", m->sweep_end);
  json_long(o, "seeds", p->seeds);
  json_long(o, "encoding", p->encoding);
  json_long(o, "detectors", p->detectors);
  json_end(o);
  json_long(o, "shared_bytes", f->shared);
  json_long(o, "gpu_bytes", f->gpu);
}

static void files_json(struct json *o, const struct plan *p)
{
  json_object(o, "file_bytes");
  json_long(o, "dictionary.h5", p->dictionary);
  json_long(o, "state.h5", p->state);
  json_long(o, "supports.h5", p->supports);
  json_end(o);
  json_long(o, "disk_bytes", p->disk);
}

static void work_lines(const struct fit_job *j, const struct fit_forecast *f)
{
  const struct fit_task *t = &j->task;
  idx p = j->rows.source.p;
  printf("fit         %s, %lld sweeps at most\n", fit_update_says(f->update),
         (long long)(t->sweeps * f->parts));
  printf("rows        %lld x %d fitted, %lld held out, up to %lld a rank: %s\n",
         (long long)f->fitted, p, (long long)f->held, (long long)f->rank_rows,
         f->alone ? "each rank has all rows" : "whole blocks of 4096 rows");
  if (f->parts > 1)
    printf("parts       %lld of %lld rows: a sweep takes one part%s\n", (long long)f->parts,
           (long long)f->part_rows, *j->parts.why ? ", since all rows do not fit into memory" : "");
  printf("atoms       %d x %d, %s%d a row while they are fitted, %d in supports.h5\n", t->k, p,
         j->o->top_s ? "" : "up to ", (int)imin(t->top_s, t->k), j->encode.top_s);
  printf("work        a sweep: routing %.3g multiply-adds", f->routing);
  if (f->descent > 0) printf(", descent %.3g", f->descent);
  printf("; encoding %.3g\n", encode_work(&j->encode));
}

static void memory_lines(const struct fit_job *j, const struct fit_forecast *f,
                         const struct plan *p)
{
  const struct refit_memory *m = &f->m;
  gidx present = memory_per_process(j->run->comm.local_size);
  printf("memory      up to %.1f MB a rank: fitting %.1f (rows %.1f, supports %.1f, atoms %.1f, "
         "coding %.1f; then one of reading %.1f, classes %.1f, an update %.1f, a sweep's end "
         "%.1f)",
         1e-6 * (double)p->most, 1e-6 * (double)m->total, 1e-6 * (double)m->held.rows,
         1e-6 * (double)m->held.supports, 1e-6 * (double)(m->held.frames + m->part),
         1e-6 * (double)f->beside, 1e-6 * (double)m->load, 1e-6 * (double)m->classes,
         1e-6 * (double)m->batch, 1e-6 * (double)m->sweep_end);
  if (p->seeds) printf(", comparing seeds %.1f", 1e-6 * (double)p->seeds);
  printf(", encoding %.1f", 1e-6 * (double)p->encoding);
  if (p->detectors) printf(", detectors %.1f", 1e-6 * (double)p->detectors);
  printf("\n");
  if (f->shared)
    printf("shared      %.1f MB once per node: lists and Gram rows on their way, of which each of "
           "its %d ranks counts a part\n",
           1e-6 * (double)f->shared, j->run->comm.local_size);
  if (f->gpu) printf("GPU         %.1f MB per GPU at least\n", 1e-6 * (double)f->gpu);
  report_present(p->most, present);
  printf("disk        %.1f MB at a time: dictionary.h5 %.1f, state.h5 %.1f, supports.h5 %.1f, and "
         "a new copy of one of them\n",
         1e-6 * (double)p->disk, 1e-6 * (double)p->dictionary, 1e-6 * (double)p->state,
         1e-6 * (double)p->supports);
}

/* If encode_s is set, held-out rows are also encoded at the end (cmd_fit.c). */
static double times_find(const struct fit_job *j, const struct fit_forecast *f,
                         const struct rates *r, struct times *t)
{
  int ranks = j->run->comm.size;
  double sweep = fit_times(&j->task, f, ranks, j->o->seeds, r, t);
  const struct encode_shape_of_rows held = {.n = j->o->encode_s ? (double)f->held : 0,
                                            .columns = j->rows.source.p,
                                            .atoms = j->task.k,
                                            .d = 1,
                                            .top_s = j->encode.top_s,
                                            .rounds = j->encode.rounds,
                                            .group_ranks = 1,
                                            .codes = 1,
                                            .nonnegative = j->task.nonnegative};
  encode_rows_times(&held, r, t);
  encode_times(&j->encode, ranks, r, t);
  return sweep;
}

int fit_plan_show(const struct fit_job *j, const struct fit_forecast *f)
{
  struct plan p;
  struct json o;
  struct plan_rates r;
  struct times t;
  double sweep = 0;
  TRY(plan_find(j, f, &p));
  TRY(report_rates_read(j->run, j->o->rates, j->task.threads, f->device, &r, &t));
  if (r.path) sweep = times_find(j, f, &r.rates, &t);
  if (!j->run->wants_json) {
    advice_rows(f->fitted, j->task.k);
    work_lines(j, f);
    memory_lines(j, f, &p);
    TRY(report_times(&r, &t));
    if (r.path) printf("sweep       %.2f s; the fit may end before its last one\n", sweep);
    return OK;
  }
  TRY(facts_begin(j->run, &o));
  plan_json(&o, j, f, &p);
  json_long(&o, "present_bytes", memory_per_process(j->run->comm.local_size));
  files_json(&o, &p);
  TRY(report_times_json(&r, &t, &o));
  if (r.path) json_real(&o, "sweep_seconds", sweep);
  return facts_end(&o);
}

void fit_point_note(struct fit_job *j, const struct fit_point *at, gidx best)
{
  j->best = at->lines[best];
  if (at->mean) memcpy(j->mean, at->mean, (size_t)j->rows.source.p * sizeof *j->mean);
}

void fit_line_log(const struct fit_job *j, const struct fit_sweep *s)
{
  const struct fit_point *at = &s->point;
  const struct fit_line *l = &at->lines[at->sweep];
  real spent = at->sweep ? l->seconds - at->lines[at->sweep - 1].seconds : 0;
  real most = (real)(j->task.sweeps * s->parts);
  char pace[96] = "";
  if (spent > 0)
    snprintf(pace, sizeof pace, ", %.0f rows/s, at most %.1f s left",
             (real)s->fitted_rows / (real)s->parts / spent,
             spent * (most - (real)at->sweep) + end_seconds(j, s, spent));
  log_info("sweep %3lld: unseen %.6f, fitted %.6f, dead %lld, revived %lld, largest move %.2g%s",
           (long long)at->sweep, l->held, l->fitted, (long long)l->dead, (long long)l->revived,
           l->move, pace);
}

void fit_report(struct fit_job *j)
{
  static const char *const reasons[] = {
      [FIT_SETTLED] = "the gain of five passes over the rows is below --tolerance",
      [FIT_SWEEPS] = "that is --sweeps",
      [FIT_SECONDS] = "another sweep would exceed --max-seconds",
  };
  const struct fit_result *r = &j->result;
  log_info("fit     rows=%lld held_out=%lld atoms=%d top_s=%d rounds=%d sweeps=%lld ranks=%d "
           "device='%s' seconds=%.2f fingerprint=%016llx",
           (long long)r->fitted_rows, (long long)r->held_out_rows, j->task.k, r->top_s,
           j->task.rounds, (long long)r->sweeps, j->run->comm.size, r->device, j->seconds,
           (unsigned long long)j->encoded.fingerprint);
  log_info("ended after sweep %lld: %s; the best is sweep %lld", (long long)r->sweeps,
           reasons[r->end], (long long)r->best);
  if (r->held_out_rows) log_info("%-22s %.6g", "unseen rows", j->best.held);
  if (!isnan(j->held_out_explained))
    log_info("%-22s %.6g, with %d atoms a row", "", j->held_out_explained, j->files.top_s);
  if (r->held_out_rows) advice_explained(j->best.held, "the unseen rows");
  log_info("%-22s %.6g, with --rho", "fitted rows", j->best.fitted);
  fit_seeds_log(j);
  if (r->held_out_rows == 0)
    log_warn_named("few-held-out",
                   "no rows were held out: what the fit explains of unseen rows is not known; give "
                   "--holdout or --holdout-share, or encode other rows");
  else if (r->held_out_rows < 10 * SPLIT_WINDOW)
    log_warn_named(
        "few-held-out",
        "%lld rows were held out: what the fit explains of unseen rows is uncertain, and is "
        "best judged by rows of another source (--holdout)",
        (long long)r->held_out_rows);
  if (j->o->holdout || r->held_out_rows == 0)
    log_info("all rows of --rows, which were fitted:");
  else
    log_info("all rows of --rows, of which %lld were fitted:", (long long)r->fitted_rows);
  /* A fit that centres the rows warned of massive rows when it computed their mean. */
  if (j->task.center) j->encoded.metrics.massive = (struct massive_rows){0};
  report_metrics(&j->encoded.metrics, 1);
  advice_dead(j->encoded.metrics.dead_atoms, j->task.k);
  if (r->end == FIT_SWEEPS) advice_converged(r->sweeps, r->gain, j->task.tolerance);
  log_info("wrote   %s", j->files.job.place.shown);
  log_info("wrote   %s", j->files.job.more[FIT_SUPPORTS].shown);
}

/* result.device is empty before the first sweep.  Then it is "cpu avx512", or "cuda" and the name
 * of the GPU. */
static void device_json(const struct fit_job *f, struct json *j)
{
  const char *device = f->result.device, *space = strchr(device, ' ');
  char kind[16];
  snprintf(kind, sizeof kind, "%.*s", space ? (int)(space - device) : 0, device);
  json_long(j, "threads", f->task.threads);
  json_text(j, "device", *kind ? kind : NULL);
  json_text(j, "variant", space ? space + 1 : NULL);
}

static void input_json(struct json *j, const char *key, const char *name, uint64_t hash)
{
  json_object(j, key);
  json_text(j, "name", name);
  json_hash(j, "rows_hash", hash);
  json_end(j);
}

static void task_json(const struct fit_job *f, struct json *j)
{
  const struct fit_task *t = &f->task;
  const struct fit_point *reached = &f->files.reached;
  const gidx *left_out = f->outliers.count;
  const char *rows = f->o->rows ? f->o->rows : f->o->capture;
  json_object(j, "inputs");
  input_json(j, "rows", rows, reached->rows_hash);
  if (f->result.held_out_rows)
    input_json(j, "held_out", f->o->holdout ? f->o->holdout : rows, reached->held_out_hash);
  json_end(j);
  json_long(j, "rows", f->result.fitted_rows);
  json_long(j, "held_rows", f->result.held_out_rows);
  json_long(j, "left_out_rows", left_out[0] + left_out[1]);
  json_long(j, "columns", t->rows->p);
  json_long(j, "atoms", t->k);
  json_long(j, "top_s", f->result.top_s);
  json_long(j, "rounds", t->rounds);
  json_text(j, "codes", t->nonnegative ? "nonnegative" : "signed");
  json_text(j, "update", fit_update_name(t->update));
  json_long(j, "minibatch", t->minibatch);
  json_text(j, "minibatch_from", f->parts.from);
}

static void sweeps_json(const struct fit_job *f, struct json *j)
{
  const struct fit_line *lines = f->files.reached.lines;
  const struct fit_point *start = f->task.start;
  gidx best = f->files.reached_best;
  json_array(j, "sweeps");
  lines_json(&fit_line_form, lines, f->files.reached.sweep + 1, start ? start->sweep + 1 : 0, j);
  json_end(j);
  json_long(j, "best_sweep", best);
  json_real(j, "unseen", lines[best].held);
  json_real(j, "fitted", lines[best].fitted);
}

static void end_json(const struct fit_job *f, struct json *j)
{
  static const char *const ends[] = {
      [FIT_SETTLED] = "tolerance", [FIT_SWEEPS] = "sweeps", [FIT_SECONDS] = "max-seconds"};
  json_real(j, "seconds", f->seconds);
  json_text(j, "end", f->has_ended ? ends[f->result.end] : NULL);
  if (!f->has_ended) return;
  json_long(j, "encode_s", f->files.top_s);
  json_real(j, "unseen_encoded", f->held_out_explained);
  stability_json(&f->stable, j);
  metrics_json(&f->encoded.metrics, 1, j);
  json_hash(j, "fingerprint", f->encoded.fingerprint);
}

int fit_summary_json(const void *of, struct json *j)
{
  device_json(of, j);
  task_json(of, j);
  sweeps_json(of, j);
  end_json(of, j);
  return OK;
}
