/* SPDX-License-Identifier: BSD-3-Clause
 * A rank that is done goes on asking with the others: so numbers of lots need not be equal, and of
 * failures all come before one is chosen, which ranks and lots then do not change. */
#include "refit/lots.h"

#include "base/num.h"
#include "base/status.h"

static const uint64_t MORE = (uint64_t)1 << 40; /* beside the bits of what asks */

int lots_run(const struct lots *l, struct comm *c, int status, gidx key, int *stopped)
{
  uint64_t told = MORE;
  idx done = 0;
  *stopped = 0;
  while (told & MORE) {
    idx count = (idx)imin(l->n - done, l->each);
    if (!status && count > 0) status = l->run(l->self, done, count);
    /* What ranks that share lots have not agreed on ends the job: the others wait for this one. */
    if (status && comm_is_alone(c) && !comm_failure_is_common(c))
      return status_pass(status, __FILE__, __LINE__);
    done += count;
    told = (!status && done < l->n ? MORE : 0) | stops_asked(l->stops);
    TRY(comm_agree_flags(c, OK, 0, &told));
    if (!(told & MORE) || told == MORE) continue;
    l->stops->stopped(l->stops->self, told & ~MORE);
    *stopped = 1;
    break;
  }
  return comm_agree_at(c, status, key);
}
