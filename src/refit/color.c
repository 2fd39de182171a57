/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads, or gathers, and colours; the others wait for its status. */
#include "refit/color.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "model/access.h"

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

int color_supports_bytes(const struct support_source *source, gidx *bytes)
{
  struct supports s = {.arena.is_dry = 1};
  TRY(supports_alloc_rows(&s, source->n, source->k));
  TRY(supports_alloc_entries(&s, source->entries, source->d, 0));
  TRY(classes_color_bytes(source->n, source->k, source->entries, bytes));
  *bytes += (gidx)s.arena.bytes;
  return OK;
}

/* The hash of supports whose rows have any length; where all are equal, that of a refit. */
static uint64_t supports_hash(const struct support_view *view, gidx longest)
{
  uint64_t sum = 0;
  for (gidx i = 0; i < view->n; i++)
    sum += support_terms(view->atoms + view->start[i], 1,
                         (idx)(view->start[i + 1] - view->start[i]), i);
  return content_hash(sum, view->n, longest, 1);
}

/* Do the supports of all rows fit on this rank, with what colouring takes beside them? */
static int memory_check(const struct support_source *source)
{
  gidx wanted = 0, present = memory_available();
  TRY(color_supports_bytes(source, &wanted));
  CHECK(wanted <= present, ERR_MEMORY,
        "%lld bytes are needed to colour %d atoms in %lld rows with %lld entries, %lld are present",
        (long long)wanted, source->k, (long long)source->n, (long long)source->entries,
        (long long)present);
  return OK;
}

static int color_alone(const struct support_source *source, struct color_result *r)
{
  TRY(memory_check(source));
  struct supports *supports = calloc(1, sizeof *supports);
  CHECK(supports, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *supports);
  double begun = log_seconds();
  TRY(supports_access(source, 0, source->n, 0, supports));
  double read = log_seconds();
  TRY(classes_color(&r->classes, &supports->view));
  r->read_seconds = read - begun;
  r->color_seconds = log_seconds() - read;
  classes_report(&r->classes, supports->longest, &r->report);
  r->fingerprint = fingerprint(r->classes.color, source->k, sizeof(idx), 0);
  r->inputs.supports = supports_hash(&supports->view, supports->longest);
  supports_free(supports);
  free(supports);
  return OK;
}

int color_supports(struct comm *c, const struct support_source *source, struct color_result *result)
{
  *result = (struct color_result){0};
  return comm_agree(c, c->rank == 0 ? color_alone(source, result) : OK);
}

void color_free(struct color_result *result)
{
  classes_free(&result->classes);
}

/* The supports of a refit on rank 0, where every row has s of them. */
struct gathered {
  struct arena arena;
  idx *counts; /* [size] rows of each rank */
  idx *color;  /* [k] */
  idx *atoms;  /* [total][s] on rank 0, as is: */
  gidx *start; /* [total + 1] */
};

static int gathered_alloc(struct gathered *g, const struct refit_state *f, int is_root)
{
  gidx entries = is_root ? f->total * f->s : 0, rows = is_root ? f->total : 0;
  TRY(arena_alloc(&g->arena, &g->counts, f->c->size, sizeof *g->counts));
  TRY(arena_alloc(&g->arena, &g->color, f->k, sizeof *g->color));
  TRY(arena_alloc(&g->arena, &g->atoms, entries, sizeof *g->atoms));
  return arena_alloc(&g->arena, &g->start, rows + 1, sizeof *g->start);
}

int color_state_bytes(const struct refit_state *f, gidx *bytes)
{
  struct gathered g = {.arena.is_dry = 1};
  TRY(gathered_alloc(&g, f, 1));
  TRY(classes_color_bytes(f->total, f->k, f->total * f->s, bytes));
  *bytes += (gidx)g.arena.bytes;
  return OK;
}

static int gathered_color(struct gathered *g, const struct refit_state *f, struct classes *classes)
{
  for (gidx i = 0; i <= f->total; i++) g->start[i] = i * f->s;
  struct support_view view = {f->total, f->k, g->start, g->atoms};
  TRY(classes_color(classes, &view));
  memcpy(g->color, classes->color, (size_t)f->k * sizeof *g->color);
  return OK;
}

int color_state(const struct refit_state *f, struct classes *classes)
{
  struct comm *c = f->c;
  struct gathered g = {0};
  gidx first;
  *classes = (struct classes){0};
  TRY(comm_agree(c, gathered_alloc(&g, f, c->rank == 0)));
  for (int r = 0; r < c->size; r++)
    TRY(comm_count(refit_rows_share(f->total, c->size, r, &first), &g.counts[r]));
  if (f->s) TRY(comm_gather(c, f->atoms, g.counts, (size_t)f->s * sizeof *g.atoms, g.atoms));
  TRY(comm_agree(c, c->rank ? OK : gathered_color(&g, f, classes)));
  idx count = classes->count;
  TRY(comm_broadcast(c, g.color, f->k, sizeof *g.color));
  TRY(comm_broadcast(c, &count, 1, sizeof count));
  int status = c->rank ? classes_from_colors(classes, g.color, f->k, count) : OK;
  arena_free(&g.arena);
  return comm_agree(c, status);
}
