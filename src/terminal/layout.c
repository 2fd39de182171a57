/* SPDX-License-Identifier: BSD-3-Clause
 * Dry allocations of the pass.  Every atom has the largest possible number of directions. */
#include "terminal/layout.h"

#include "base/num.h"
#include "base/status.h"
#include "device/lanczos.h"
#include "refit/directions.h"
#include "refit/layout.h"
#include "terminal/covariance.h"
#include "terminal/device.h"
#include "terminal/directions.h"
#include "terminal/slq.h"
#include "terminal/spectrum.h"

#define MAX_BORDER 1e9
enum { LIBRARIES = 32 << 20 }; /* bytes of a rank for caches of HDF5, buffers of MPI and LAPACK */

/* *bytes <- the memory of a rank while directions are found: the state, and the larger of two: the
 * memory for reading the state, and for a batch of atoms. */
static int directions_bytes(const struct refit_state *f, idx q, gidx *bytes)
{
  struct refit_state dry = *f;
  struct refit_resident_bytes held;
  struct atom_batch b;
  gidx load, batch;
  idx count;
  dry.arena = (struct arena){.is_dry = 1};
  TRY(refit_state_alloc(&dry, &held));
  TRY(refit_state_load_bytes(f, &load));
  TRY(atom_batch_max(f, terminal_batch_bytes, q, &count));
  TRY(atom_batch_bound(&b, f, count, ROWS_SHARED));
  TRY(terminal_batch_bytes(f, &b, q, &batch));
  *bytes = LIBRARIES + (gidx)dry.arena.bytes + imax(load, batch);
  return OK;
}

/* Set up the pass of rank 0 with q directions per atom, in dry arenas. */
static int bound_open(struct terminal *w, struct terminal_result *r, idx q)
{
  const struct atom_source *a = w->t->atoms;
  *r = (struct terminal_result){.k = a->k, .d = a->d, .p = a->p, .arena.is_dry = 1};
  r->artifact.arena.is_dry = 1;
  w->r = r;
  w->inputs.is_dry = 1;
  r->directions = a->k * q;
  r->n_border = r->directions * a->d;
  r->max_k = q * a->d;
  return arena_alloc(&r->arena, &r->border, (gidx)r->k + 1, sizeof *r->border);
}

static int pass_bytes(struct terminal *w, struct terminal_memory *m)
{
  const struct terminal_task *t = w->t;
  struct terminal_result *r = w->r;
  unsigned char *atom;
  int forms = t->evidence == EVIDENCE_EXACT, asks = forms && t->spectrum != SPECTRUM_NONE;
  TRY(terminal_directions_alloc(w));
  TRY(terminal_atoms_alloc(w));
  TRY(artifact_alloc(&r->artifact, r->k, r->d, r->p, &atom));
  m->inputs = (gidx)(w->inputs.bytes + r->artifact.arena.bytes);
  TRY(terminal_duplicates_bytes(w, &m->duplicates));
  /* A dry `auto` may turn out to be a CPU. */
  int on_host = !device_is_gpu(&w->device) || (w->device.is_dry && strcmp(t->device, "auto") == 0);
  if (forms && on_host) m->schur = terminal_schur_bytes(w);
  if (asks) TRY(terminal_spectrum_bytes(w, &m->lapack));
  if (forms) TRY(terminal_covariance_alloc(w));
  m->results = (gidx)r->arena.bytes;
  return OK;
}

/* *j <- a joint system in which every atom has q directions. */
static int max_joint(const struct terminal *w, idx q, struct arena *arena, struct joint *j)
{
  idx *direction = NULL, k = w->r->k;
  TRY(arena_alloc(arena, &direction, (gidx)k + 1, sizeof *direction));
  for (idx a = 0; a < k; a++) direction[a + 1] = direction[a] + q;
  *j = (struct joint){.k = k, .d = w->r->d, .p = w->r->p, .direction = direction};
  return OK;
}

/* GPU memory: S, the work space of its factor, and the larger of a batch of rows and a panel of the
 * covariance. */
static int gpu_bytes(const struct terminal *w, idx q, struct terminal_memory *m)
{
  const struct terminal_task *t = w->t;
  const struct terminal_result *r = w->r;
  struct arena arena = {0};
  struct joint j;
  gidx before;
  if (!device_is_gpu(&w->device)) return OK;
  TRY(max_joint(w, q, &arena, &j));
  m->gpu_schur = terminal_schur_bytes(w);
  m->gpu_factor = device_dense_bytes(&w->device, t->threads, t->panel, r->n_border);
  m->gpu_rows =
      imax(device_joint_bytes(&w->device, &j, w->longest, t->workspace), terminal_panel_bytes(w));
  TRY(terminal_duplicates_device(w, &before));
  m->gpu = imax(m->gpu_schur + m->gpu_factor + m->gpu_rows, before);
  arena_free(&arena);
  return OK;
}

/* The smallest workspace: arrays that rows are read into, operands of dense work, and one row of
 * the joint work; for EVIDENCE_SLQ see slq.h. */
static int workspace_bytes(const struct terminal *w, idx q, gidx *min)
{
  const struct terminal_task *t = w->t;
  struct terminal_rows rows = {.arena.is_dry = 1};
  struct arena arena = {0};
  struct joint j;
  idx border = w->r->n_border;
  TRY(terminal_rows_alloc(&rows, w));
  TRY(max_joint(w, q, &arena, &j));
  *min = (gidx)rows.arena.bytes + cpu_dense_bytes(t->threads, t->panel, border) +
         cpu_joint_bytes(&j, t->threads, w->longest) + cpu_joint_row_bytes(&j, w->longest);
  arena_free(&arena);
  if (t->evidence == EVIDENCE_SLQ)
    *min =
        SLQ_WORKSPACES * imax(*min, lanczos_bytes(border, 1, (idx)imin(border, SLQ_STEPS_FIRST)));
  return OK;
}

int terminal_memory(const struct terminal_task *t, struct comm *c, const struct device *dev,
                    struct terminal_memory *m)
{
  const struct atom_source *a = t->atoms;
  idx q = (idx)imin(t->directions, imax(a->p - a->d, 0));
  struct refit_task task = terminal_refit_task(t);
  struct refit_state f;
  struct terminal_result r;
  TRY(refit_state_shape(&f, &task, c));
  CHECK((double)a->k * (double)q * (double)a->d < MAX_BORDER, ERR_MEMORY,
        "a border of %.0f is beyond one rank: give fewer --directions",
        (double)a->k * (double)q * (double)a->d);
  struct terminal w = {.t = t, .c = c, .longest = f.s};
  if (c->rank == 0) w.device = *dev;
  TRY(bound_open(&w, &r, q));
  *m = (struct terminal_memory){
      .border = r.n_border, .ranks = c->local_size, .workspace = t->workspace};
  TRY(directions_bytes(&f, t->directions, &m->fit));
  TRY(pass_bytes(&w, m));
  TRY(gpu_bytes(&w, q, m));
  gidx pass =
      LIBRARIES + m->inputs + imax(m->duplicates, m->schur + m->lapack + m->workspace + m->results);
  m->total = m->ranks * m->fit + (c->rank ? 0 : m->inputs);
  if (c->rank == 0) m->total = imax(m->total, pass);
  return workspace_bytes(&w, q, &m->min);
}

int terminal_fits(const struct terminal_task *t, struct comm *c, const struct device *dev)
{
  struct terminal_memory m;
  TRY(terminal_memory(t, c, dev, &m));
  CHECK(t->workspace >= m.min, ERR_USAGE,
        "--workspace of %lld bytes is too little: a border of %lld needs %lld bytes",
        (long long)t->workspace, (long long)m.border, (long long)m.min);
  CHECK(m.total <= t->present || c->rank == 0, ERR_MEMORY,
        "finding the directions needs %lld bytes on this machine (%d ranks, %lld each), %lld are "
        "present: use more machines, or fewer ranks on each",
        (long long)m.total, m.ranks, (long long)m.fit, (long long)t->present);
  CHECK(m.total <= t->present, ERR_MEMORY,
        "a border of %lld needs %lld bytes on the machine of rank 0 (S %lld, LAPACK %lld, "
        "workspace %lld, inputs %lld, results %lld; before, near duplicates %lld and for the "
        "directions %lld on each of %d ranks), %lld are present: a smaller --workspace, of %lld "
        "MiB at least, --spectrum none, fewer --directions or --evidence slq need less",
        (long long)m.border, (long long)m.total, (long long)m.schur, (long long)m.lapack,
        (long long)m.workspace, (long long)m.inputs, (long long)m.results, (long long)m.duplicates,
        (long long)m.fit, m.ranks, (long long)t->present, (long long)ceil_div(m.min, 1 << 20));
  return OK;
}
