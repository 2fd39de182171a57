/* SPDX-License-Identifier: BSD-3-Clause
 * A rank that is done goes on asking with the others: so numbers of batches need not be equal, and
 * of failures all come before one is chosen, which ranks and batches then do not change. */
#include "refit/row_batches.h"

#include "base/num.h"
#include "base/status.h"

static const uint64_t MORE = (uint64_t)1 << 40; /* beside the bits of what asks */

/* *bits <- do all ranks go on (MORE alone), or what asks them to stop?  Collective. */
static int others_ask(const struct row_batches *l, struct comm *c, int status, uint64_t *bits)
{
  *bits = (!status && l->first < l->n ? MORE : 0) | stops_asked(l->stops);
  return comm_agree_flags(c, OK, 0, bits);
}

int row_batches_next(struct row_batches *l, struct comm *c, int *status)
{
  uint64_t bits = MORE;
  do {
    /* What ranks that share batches have not agreed on ends the job: others wait for this one. */
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
