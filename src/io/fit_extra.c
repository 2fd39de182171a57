/* SPDX-License-Identifier: BSD-3-Clause
 * The parts are written one after another, if they exist. */
#include "io/fit_extra.h"

#include "base/status.h"

int fit_extra_is_there(const struct fit_extra *e)
{
  return e->seeds || e->detectors.weights;
}

int fit_extra_write(struct matrix_output *f, const struct fit_extra *e)
{
  if (e->seeds) TRY(seeds_write(&f->result.h5, e->seeds));
  return e->detectors.weights ? detectors_write(f, &e->detectors) : OK;
}
