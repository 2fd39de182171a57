/* SPDX-License-Identifier: BSD-3-Clause
 * Each phase of a job has a dry arena; the phase that takes the most memory decides. */
#include "refit/layout.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "base/status.h"
#include "refit/color.h"
#include "refit/state_write.h"
#include "refit/sums.h"
#include "refit/sweep_end.h"

idx refit_task_support(const struct refit_task *t)
{
  return t->rows->n ? (idx)(t->supports->entries / t->rows->n) : t->top_s;
}

static gidx state_bytes(const struct refit_memory *m)
{
  return m->held.rows + m->held.supports + m->held.frames + m->part;
}

/* text[] <- what ranks share, for a message. */
static const char *shared_say(const struct refit_memory *m, char *text, size_t capacity)
{
  *text = '\0';
  if (m->held.shared)
    snprintf(text, capacity, ", its part of the %lld that the ranks of a node share %lld",
             (long long)m->held.shared, (long long)m->part);
  return text;
}

/* The memory that a state with these sizes holds, and what reading it takes in addition. */
static int state_find(const struct refit_state *f, struct refit_memory *m)
{
  struct refit_state dry = *f;
  dry.arena = (struct arena){.is_dry = 1};
  TRY(refit_state_alloc(&dry, &m->held));
  m->held.rows += f->task->beside;
  m->part = ceil_div(m->held.shared, f->c->local_size);
  TRY(refit_state_load_bytes(f, &m->load));
  return f->task->colors ? color_state_bytes(f, &m->classes) : OK;
}

/* About how many atoms the largest class has, if the job finds classes.  Let all atoms be equally
 * frequent, and two of them share l rows on average.  Then two share no row with probability
 * exp(-l).  In the graph that joins atoms with common rows, a greedy colouring then has classes of
 * ln(K) / l atoms; the first classes are up to twice as large. */
static idx class_atoms(const struct refit_state *f, idx most)
{
  double k = f->k, s = f->s, l = (double)f->total * s / k * s / k;
  double largest = fmin(1 + 2 * log(k) / fmax(l, 1e-9), k / fmax(s, 1));
  return f->task->colors ? (idx)imin(most, (gidx)ceil(largest)) : most;
}

int refit_memory(const struct refit_task *t, const struct comm *c, batch_bytes_of *bytes_of, idx q,
                 struct refit_memory *m)
{
  struct comm root = *c;
  struct refit_state f;
  struct atom_batch b;
  gidx sums, written;
  idx count;
  root.rank = 0;
  *m = (struct refit_memory){0};
  TRY(refit_state_shape(&f, t, &root));
  TRY(state_find(&f, m));
  TRY(refit_sums_bytes(&f, &sums));
  TRY(atom_batch_max(&f, bytes_of, q, &count));
  TRY(atom_batch_bound(&b, &f, count, ROWS_OF_CLASS));
  TRY(bytes_of(&f, &b, q, &m->most));
  TRY(atom_batch_bound(&b, &f, class_atoms(&f, count), ROWS_OF_CLASS));
  TRY(bytes_of(&f, &b, q, &m->batch));
  TRY(refit_sweep_end_bytes(&f, &m->sweep_end));
  TRY(refit_state_write_bytes(&f, &written));
  m->load = imax(m->load, sums);
  m->sweep_end = imax(m->sweep_end, written);
  m->total = memory_program() + state_bytes(m) +
             imax(imax(m->load, m->classes), imax(m->batch, m->sweep_end));
  return OK;
}

int refit_memory_check(const struct refit_state *f)
{
  struct refit_memory m = {0};
  char shared[128];
  TRY(state_find(f, &m));
  gidx wanted = state_bytes(&m) + imax(m.load, m.classes);
  gidx present = memory_per_process(f->c->local_size);
  CHECK(wanted <= present, ERR_MEMORY,
        "%lld bytes are needed (rows %lld, supports %lld, frames %lld%s, then the larger one of "
        "reading %lld and colouring %lld), %lld are present for each rank: use more machines, "
        "which hold fewer rows each",
        (long long)wanted, (long long)m.held.rows, (long long)m.held.supports,
        (long long)m.held.frames, shared_say(&m, shared, sizeof shared), (long long)m.load,
        (long long)m.classes, (long long)present);
  return OK;
}

/* Check the memory of the phases after reading and colouring against this rank's share. */
static int later_check(const struct refit_state *f, batch_bytes_of *bytes_of, idx q,
                       int has_sweep_end)
{
  struct refit_memory m;
  char shared[128];
  gidx held, end, present = memory_per_process(f->c->local_size);
  TRY(refit_memory(f->task, f->c, bytes_of, q, &m));
  held = state_bytes(&m);
  end = has_sweep_end ? m.sweep_end : 0;
  if (f->task->lends_sums) m.most += m.load; /* the sums stay while the next rows are read */
  CHECK(held + imax(m.most, end) <= present, ERR_MEMORY,
        "%lld bytes are needed (rows %lld, supports %lld, frames %lld%s, then the larger one of "
        "moving atoms %lld and a sweep's end %lld), %lld are present for each rank: use more "
        "machines, which hold fewer rows each%s",
        (long long)(held + imax(m.most, end)), (long long)m.held.rows, (long long)m.held.supports,
        (long long)m.held.frames, shared_say(&m, shared, sizeof shared), (long long)m.most,
        (long long)end, (long long)present,
        f->task->shares ? "" : ", or fewer ranks on each, which hold fewer copies of the frames");
  return OK;
}

int refit_total_check(const struct refit_task *t, struct comm *c, batch_bytes_of *bytes_of, idx q,
                      int has_sweep_end)
{
  struct refit_state f;
  int status = refit_state_shape(&f, t, c);
  if (!status) status = refit_memory_check(&f);
  if (!status) status = later_check(&f, bytes_of, q, has_sweep_end);
  return comm_agree(c, status);
}
