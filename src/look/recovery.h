/* SPDX-License-Identifier: BSD-3-Clause
 * Measure how well atoms find the features of synthetic rows, from their codes and the truth
 * (N.32).
 *
 * Floor: look.  Knows no files.  Not collective: runs on one rank. */
#ifndef LOOK_RECOVERY_H
#define LOOK_RECOVERY_H

#include "model/recovery.h"
#include "model/supports.h"

struct recovery_task {
  const struct support_source *codes, *truth; /* of the same rows */
  const idx *nearest; /* [codes->k] the feature with the largest |cosine| to each atom */
};

/* ERR_INPUT: codes or truth are invalid, and the message says where.  ERR_MEMORY. */
int recovery_run(const struct recovery_task *task, struct recovery *result);

#endif
