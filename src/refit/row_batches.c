/* SPDX-License-Identifier: BSD-3-Clause
 * A rank that is done continues to meet the others.  So ranks may have different numbers of
 * batches.  All failures are known before one is chosen, so the choice does not depend on ranks and
 * batches. */
#include "refit/row_batches.h"

#include "base/num.h"
#include "base/status.h"

static const uint64_t MORE = (uint64_t)1 << 40; /* a bit that no reason to stop uses */

/* *bits <- the union of all ranks' reasons to stop, with MORE if any rank has rows left and no
 * failure.  Collective. */
static int others_ask(const struct row_batches *l, struct comm *c, int status, uint64_t *bits)
{
  *bits = (!status && l->first < l->n ? MORE : 0) | stops_asked(l->stops);
  return comm_agree_flags(c, OK, 0, bits);
}

int row_batches_next(struct row_batches *l, struct comm *c, int *status)
{
  uint64_t bits = MORE;
  do {
    /* With comm_alone() a failure that is not agreed must end the job: others wait for this
     * rank. */
    if (*status && comm_is_alone(c) && !comm_failure_is_common(c)) return 0;
    if (l->is_begun) {
      l->first += l->count;
      int asked = others_ask(l, c, *status, &bits);
      if (asked) *status = asked;
      if (asked) return 0;
    }
    l->is_begun = 1;
    l->count = (idx)imin(l->n - l->first, l->each);
  } while (bits == MORE && (*status || l->count <= 0));
  if (bits == MORE) return 1;
  l->is_stopped = (bits & MORE) != 0;
  if (l->is_stopped) l->stops->stopped(l->stops->self, bits & ~MORE);
  *status = comm_agree_at(c, *status, l->key);
  return 0;
}
