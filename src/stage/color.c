/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and colours; the others wait for its status. */
#include "stage/color.h"

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "stage/access.h"

struct load {
  const struct support_source *source;
  gidx first, n;
  int with_codes;
  struct supports *out;
};

static int load_job(void *argument)
{
  const struct load *l = argument;
  return supports_load(l->out, l->source, l->first, l->n, l->with_codes);
}

int supports_access(struct comm *c, const struct support_source *source, gidx first, gidx n,
                    int with_codes, struct supports *out)
{
  static struct load last; /* outlives a read that passed the deadline */
  struct worker worker;
  last = (struct load){source, first, n, with_codes, out};
  TRY(worker_open(&worker));
  TRY(access_run(&worker, c->deadline, load_job, &last));
  worker_close(&worker);
  return OK;
}

static int color_alone(struct comm *c, const struct support_source *source, struct color_result *r)
{
  static struct supports supports;
  double begun = log_seconds();
  TRY(supports_access(c, source, 0, source->n, 0, &supports));
  double read = log_seconds();
  TRY(classes_color(&r->classes, &supports.view));
  r->read_seconds = read - begun;
  r->color_seconds = log_seconds() - read;
  classes_report(&r->classes, supports.longest, &r->report);
  r->fingerprint = fingerprint(r->classes.color, source->k, sizeof(idx), 0);
  supports_free(&supports);
  return OK;
}

int color_run(struct comm *c, const struct support_source *source, struct color_result *result)
{
  *result = (struct color_result){0};
  return comm_agree(c, c->rank == 0 ? color_alone(c, source, result) : OK);
}

void color_free(struct color_result *result)
{
  classes_free(&result->classes);
}
