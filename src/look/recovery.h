/* SPDX-License-Identifier: BSD-3-Clause
 * From codes and the truth of the same rows to how well atoms find features (N.32).
 *
 * Floor: look.  Knows no files.  Not collective: one rank. */
#ifndef LOOK_RECOVERY_H
#define LOOK_RECOVERY_H

#include "model/recovery.h"
#include "model/supports.h"

struct recovery_task {
  const struct support_source *codes, *truth; /* of the same rows */
  const idx *nearest; /* [codes->k] the feature with the largest |cosine| to each atom */
};

/* ERR_INPUT says what is wrong with codes or truth. */
int recovery_run(const struct recovery_task *task, struct recovery *result);

#endif
