/* SPDX-License-Identifier: BSD-3-Clause
 * The best atoms are in fit_files already; those of another sweep are copied here.  Both change
 * only when the worker is idle. */
#include "cli/fit_publisher.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

gidx fit_publisher_bytes(idx k, idx p)
{
  return (gidx)k * p * (gidx)sizeof(float);
}

int fit_publisher_wait(struct fit_publisher *p)
{
  return comm_agree(&p->run->comm, p->worker.state ? worker_wait(&p->worker) : OK);
}

/* The worker's job. */
static int sweep_publish(void *argument)
{
  struct fit_publisher *p = argument;
  gidx k = p->files->k, columns = p->files->p;
  phase_begin(p->write);
  TRY(fit_files_write(p->files, p->run, &p->sweep, p->threads));
  fit_page_write(p->page);
  gidx sums = p->sweep.point.gram ? k * (k + columns) * (gidx)sizeof(real) : 0;
  phase_end(p->write, (double)(sums + fit_publisher_bytes(p->files->k, p->files->p)));
  return OK;
}

/* Rank 0: what the worker reads is its own from here on, but for the sums of a fit by parts. */
static int sweep_copy(struct fit_publisher *p, const struct fit_sweep *s)
{
  gidx bytes = fit_publisher_bytes(p->files->k, p->files->p);
  p->sweep = *s;
  p->sweep.point.lines = NULL; /* of fit_files */
  p->sweep.point.mean = p->mean;
  p->sweep.point.atoms = p->files->best;
  if (s->best == s->point.sweep) return OK;
  if (!p->atoms) p->atoms = memory_zeroed((size_t)bytes);
  CHECK(p->atoms, ERR_MEMORY, "cannot allocate %lld bytes for a copy of the atoms",
        (long long)bytes);
  memcpy(p->atoms, s->point.atoms, (size_t)bytes);
  p->sweep.point.atoms = p->atoms;
  return OK;
}

static int sweep_begin(struct fit_publisher *p, const struct fit_sweep *s)
{
  TRY(fit_files_take(p->files, s));
  if (p->run->comm.rank) return OK;
  TRY(fit_page_take(p->page, &s->point, s->best));
  TRY(sweep_copy(p, s));
  if (!p->worker.state) TRY(worker_open(&p->worker));
  return worker_start(&p->worker, sweep_publish, p);
}

int fit_publisher_begin(struct fit_publisher *p, const struct fit_sweep *s)
{
  TRY(fit_publisher_wait(p));
  TRY(comm_agree(&p->run->comm, sweep_begin(p, s)));
  return s->point.gram ? fit_publisher_wait(p) : OK;
}

void fit_publisher_close(struct fit_publisher *p)
{
  worker_close(&p->worker);
  free(p->atoms);
  *p = (struct fit_publisher){0};
}
