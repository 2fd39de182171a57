/* SPDX-License-Identifier: BSD-3-Clause
 * Bounds from sizes alone: every term is what an array of the pass takes. */
#include "base/status.h"
#include "device/lanczos.h"
#include "stage/directions.h"
#include "stage/fit_memory.h"
#include "stage/terminal_inside.h"

enum { LIBRARIES = 32 << 20 }; /* of a rank: caches of HDF5, buffers of MPI and LAPACK */

static gidx larger(gidx a, gidx b)
{
  return a > b ? a : b;
}

/* All atoms with as many directions as they may have. */
static int joint_most(const struct terminal_task *t, gidx q, struct arena *arena, struct joint *j)
{
  idx *direction = NULL;
  TRY(arena_take(arena, &direction, (gidx)t->atoms->k + 1, sizeof *direction));
  for (idx a = 0; a < t->atoms->k; a++) direction[a + 1] = direction[a] + (idx)q;
  *j = (struct joint){.k = t->atoms->k, .d = t->atoms->d, .p = t->atoms->p, .direction = direction};
  return OK;
}

static int workspace_find(const struct terminal_task *t, const struct fit *f, gidx q,
                          struct terminal_memory *m)
{
  struct arena arena = {0};
  struct joint j;
  idx border = (idx)m->border, least = border < SLQ_STEPS_FIRST ? border : SLQ_STEPS_FIRST;
  TRY(joint_most(t, q, &arena, &j));
  m->least = terminal_rows_bytes(t->rows->n, t->atoms, f->s) +
             dense_bytes(t->threads, t->panel, border) + joint_bytes(&j, t->threads, f->s) +
             joint_row_bytes(&j, f->s);
  arena_free(&arena);
  if (t->evidence == EVIDENCE_SLQ)
    m->least = SLQ_WORKSPACES * larger(m->least, lanczos_bytes(border, 1, least));
  return OK;
}

int terminal_memory(const struct terminal_task *t, struct comm *c, struct terminal_memory *m)
{
  gidx k = t->atoms->k, d = t->atoms->d, p = t->atoms->p, a_real = sizeof(real);
  gidx q = t->directions < p - d ? t->directions : p > d ? p - d : 0, block = q * d * q * d;
  int forms = t->evidence == EVIDENCE_EXACT, asks = forms && t->spectrum != SPECTRUM_NONE;
  struct fit_task task = terminal_fit(t);
  struct fit f;
  TRY(fit_shape(&f, &task, c));
  CHECK((double)k * (double)q * (double)d < BORDER_MOST, ERR_MEMORY,
        "a border of %.0f is beyond one rank: fewer --directions are needed",
        (double)k * (double)q * (double)d);
  *m = (struct terminal_memory){.border = k * q * d, .ranks = c->local_size};
  m->fit = LIBRARIES + fit_bytes(&f) + directions_bytes(&f, t->directions);
  m->schur = forms ? a_real * m->border * m->border : 0;
  m->lapack = asks ? a_real * m->border * (m->border + WEAK_MOST + 80) : 0;
  m->workspace = t->workspace;
  m->inputs = k * d * p * (gidx)sizeof(float) + k * t->directions * p * a_real + k * HASH_BYTES;
  m->results = forms ? a_real * block * (k + t->cross) + 80 * (gidx)t->cross : 0;
  m->duplicates = terminal_duplicates_bytes(t);
  gidx pass = LIBRARIES + m->inputs +
              larger(m->duplicates, m->schur + m->lapack + m->workspace + m->results);
  m->total = m->ranks * m->fit + (c->rank ? 0 : m->inputs);
  if (c->rank == 0) m->total = larger(m->total, pass);
  return workspace_find(t, &f, q, m);
}

int terminal_fits(const struct terminal_task *t, struct comm *c)
{
  struct terminal_memory m;
  TRY(terminal_memory(t, c, &m));
  CHECK(t->workspace >= m.least, ERR_USAGE,
        "--workspace of %lld bytes is too little: a border of %lld needs %lld",
        (long long)t->workspace, (long long)m.border, (long long)m.least);
  CHECK(m.total <= t->present || c->rank == 0, ERR_MEMORY,
        "finding the directions needs %lld bytes on this machine (%d ranks, %lld each), %lld are "
        "present: more machines, or fewer ranks on each",
        (long long)m.total, m.ranks, (long long)m.fit, (long long)t->present);
  CHECK(m.total <= t->present, ERR_MEMORY,
        "a border of %lld needs %lld bytes on the machine of rank 0 (S %lld, LAPACK %lld, "
        "workspace %lld, inputs %lld, results %lld; before, near duplicates %lld and for the "
        "directions %lld on each of %d ranks), %lld are present: --spectrum none, fewer "
        "--directions or --evidence slq need less",
        (long long)m.border, (long long)m.total, (long long)m.schur, (long long)m.lapack,
        (long long)m.workspace, (long long)m.inputs, (long long)m.results, (long long)m.duplicates,
        (long long)m.fit, m.ranks, (long long)t->present);
  return OK;
}
