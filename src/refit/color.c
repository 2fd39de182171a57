/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank reads its share of the rows, unless it already holds this share. */
#include "refit/color.h"

#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "model/access.h"
#include "refit/coloring.h"

struct supports_job {
  const struct support_source *source;
  gidx first, n;
  int with_codes;
  struct supports *out;
};

static int supports_job_run(void *argument)
{
  const struct supports_job *j = argument;
  return supports_load(j->out, j->source, j->first, j->n, j->with_codes);
}

int supports_access(const struct support_source *source, gidx first, gidx n, int with_codes,
                    struct supports *out)
{
  struct worker worker;
  struct supports_job job = {source, first, n, with_codes, out};
  TRY(worker_open(&worker));
  int status = worker_run(&worker, supports_job_run, &job);
  worker_close(&worker);
  return status;
}

/* The rows of a rank, and what is found of them.  After a failure a thread may still use this
 * struct. */
struct color_job {
  const struct support_source *source;
  gidx first, n;
  struct supports supports;
};

/* *entries <- the number of own entries, if the offsets are valid.  supports_access() checks the
 * offsets. */
static int entries_find(const struct color_job *j, gidx *entries)
{
  const struct support_source *s = j->source;
  gidx begin = 0, end = 0;
  *entries = s->entries;
  if (j->n == s->n) return OK;
  TRY(s->starts(s->self, j->first, 0, &begin));
  TRY(s->starts(s->self, j->first + j->n, 0, &end));
  *entries = imin(imax(end - begin, 0), s->entries);
  return OK;
}

/* Check that the supports of own rows fit in memory, with what colouring takes. */
static int memory_check(const struct color_job *j, int ranks)
{
  struct supports dry = {.arena.is_dry = 1};
  gidx entries = 0, wanted = 0, present = memory_per_process(ranks);
  TRY(entries_find(j, &entries));
  TRY(supports_alloc_rows(&dry, j->n, j->source->k));
  TRY(supports_alloc_entries(&dry, entries, j->source->d, 0));
  TRY(coloring_bytes(j->source->k, entries, &wanted));
  wanted += (gidx)dry.arena.bytes;
  CHECK(wanted <= present, ERR_MEMORY,
        "%lld bytes are needed to colour %d atoms in %lld rows with %lld entries, %lld are "
        "present for each rank: use more ranks on more machines, which hold fewer rows each",
        (long long)wanted, j->source->k, (long long)j->n, (long long)entries, (long long)present);
  return OK;
}

static int supports_open(struct color_job *j, int ranks)
{
  TRY(memory_check(j, ranks));
  return supports_access(j->source, j->first, j->n, 0, &j->supports);
}

/* *longest <- the largest number of atoms of a row.  *hash <- the hash of the supports, whose rows
 * may have any numbers of atoms.  If these are all equal, a refit computes the same hash.
 * Collective. */
static int supports_name(struct comm *c, const struct color_job *j, gidx *longest, uint64_t *hash)
{
  const struct support_view *view = &j->supports.view;
  uint64_t terms = 0;
  for (gidx i = 0; i < view->n; i++)
    terms += support_terms(view->atoms + view->start[i], 1,
                           (idx)(view->start[i + 1] - view->start[i]), j->first + i);
  gidx sum = (gidx)terms, *all = calloc((size_t)c->size, sizeof *all);
  CHECK(all, ERR_MEMORY, "cannot allocate %d lengths", c->size);
  TRY(comm_sum(c, &sum, 1));
  TRY(comm_allgather_long(c, j->supports.longest, all));
  *longest = 0;
  for (int r = 0; r < c->size; r++) *longest = imax(*longest, all[r]);
  free(all);
  *hash = content_hash((uint64_t)sum, j->source->n, *longest, 1);
  return OK;
}

int color_supports(struct comm *c, const struct support_source *source, int threads,
                   struct color_result *r)
{
  struct color_job *j;
  gidx longest = 0;
  *r = (struct color_result){0};
  TRY(comm_agree(c, struct_alloc(&j, sizeof *j)));
  j->source = source;
  comm_partition(source->n, c->size, c->rank, &j->first, &j->n);
  double begun = log_seconds();
  TRY(comm_agree_at(c, supports_open(j, c->local_size), j->first));
  double read = log_seconds();
  TRY(coloring_run(c, &j->supports.view, threads, NULL, &r->classes));
  r->read_seconds = read - begun;
  r->color_seconds = log_seconds() - read;
  TRY(supports_name(c, j, &longest, &r->inputs.supports));
  classes_report(&r->classes, longest, &r->report);
  r->fingerprint = fingerprint(r->classes.color, source->k, sizeof(idx), 0);
  supports_free(&j->supports);
  free(j);
  return OK;
}

void color_free(struct color_result *result)
{
  classes_free(&result->classes);
}

void color_log(const struct class_report *r)
{
  enum { FEW = 2 }; /* mean atoms per class */
  if (r->classes == 0) return;
  log_info("classes %lld of %lld to %lld atoms, mean %.1f", (long long)r->classes,
           (long long)r->min, (long long)r->max, r->mean);
  if (r->mean < FEW)
    log_info("classes have fewer than 2 atoms on average, and are moved one after another: "
             "`sagitta fit --update joint` moves all atoms at once");
}

static int starts_alloc(struct arena *arena, const struct refit_state *f, gidx **start)
{
  return arena_alloc(arena, start, (gidx)f->n + 1, sizeof **start);
}

int color_state_bytes(const struct refit_state *f, gidx *bytes)
{
  struct arena dry = {.is_dry = 1};
  gidx *start;
  TRY(starts_alloc(&dry, f, &start));
  TRY(coloring_bytes(f->k, (gidx)f->n * f->s, bytes));
  *bytes += (gidx)dry.bytes;
  return OK;
}

int color_state(const struct refit_state *f, const struct color_looker *looker,
                struct classes *classes)
{
  struct arena arena = {0};
  gidx *start;
  *classes = (struct classes){0};
  TRY(comm_agree(f->c, starts_alloc(&arena, f, &start)));
  for (gidx i = 0; i <= f->n; i++) start[i] = i * f->s;
  const struct support_view view = {f->n, f->k, start, f->atoms};
  TRY(coloring_run(f->c, &view, f->task->threads, looker, classes));
  arena_free(&arena);
  return OK;
}
