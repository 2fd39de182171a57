/* SPDX-License-Identifier: BSD-3-Clause
 * What a fit adds to its dictionary after the atoms are final: the results of fits with other seeds
 * (seeds.h), and detectors (encoder.h).
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_FIT_EXTRA_H
#define IO_FIT_EXTRA_H

#include "io/encoder.h"
#include "io/seeds.h"

struct fit_extra {
  const struct seeds_record *seeds; /* NULL: none; borrowed, as are the detectors */
  struct detectors detectors;       /* weights NULL: none */
};

/* Is there anything to add? */
int fit_extra_is_there(const struct fit_extra *extra);
/* Add it to a dictionary that is being written; extra may be NULL. */
int fit_extra_write(struct matrix_output *f, const struct fit_extra *extra);

#endif
