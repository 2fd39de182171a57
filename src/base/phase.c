/* SPDX-License-Identifier: BSD-3-Clause
 * A phase is timed by log_seconds(). */
#include "base/phase.h"

#include "base/log.h"

void phase_begin(struct phase *p)
{
  p->begun = log_seconds();
}

void phase_end(struct phase *p, double work)
{
  p->seconds += log_seconds() - p->begun;
  p->work += work;
  p->calls++;
}
