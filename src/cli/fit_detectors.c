/* SPDX-License-Identifier: BSD-3-Clause
 * The codes are read from the file that was just written. */
#include "cli/fit_detectors.h"

#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "job/agreement.h"
#include "io/supports_input.h"
#include "look/detect.h"

static struct detect_task task_of(const struct fit_job *j, const struct atom_source *atoms,
                                  const struct support_source *codes)
{
  return (struct detect_task){.rows = &j->rows.source,
                              .atoms = atoms,
                              .codes = codes,
                              .mean = j->task.center ? j->mean : NULL,
                              .threads = j->task.threads};
}

/* Atoms and codes that are not there yet: their shapes. */
struct shapes {
  struct atom_source atoms;
  struct support_source codes;
};

static struct shapes shapes_of(const struct fit_job *j)
{
  gidx n = j->rows.source.n;
  idx k = j->task.k;
  return (struct shapes){
      {.k = k, .d = 1, .p = j->rows.source.p, .name = "the fit"},
      {.n = n, .k = k, .d = 1, .entries = n * j->files.top_s, .name = "the codes"}};
}

int fit_detectors_check(struct fit_job *j)
{
  const struct shapes s = shapes_of(j);
  const struct detect_task task = task_of(j, &s.atoms, &s.codes);
  if (!j->o->detectors) return OK;
  TRY(comm_agree(&j->run->comm, detect_check(&task)));
  return detect_memory_check(&task, &j->run->comm);
}

int fit_detectors_bytes(const struct fit_job *j, gidx *bytes)
{
  const struct shapes s = shapes_of(j);
  const struct detect_task task = task_of(j, &s.atoms, &s.codes);
  *bytes = 0;
  return j->o->detectors ? detect_memory(&task, &j->run->comm, bytes) : OK;
}

/* Where the codes are, on every rank. */
static int codes_find(struct fit_job *j, char *file, size_t capacity)
{
  if (j->run->comm.rank == 0) memcpy(file, j->files.job.more[FIT_SUPPORTS].file, capacity);
  return comm_broadcast(&j->run->comm, file, (gidx)capacity, 1);
}

static int detectors_find(struct fit_job *j, const struct support_source *codes,
                          struct detect_result *result)
{
  const struct detect_task task = task_of(j, &j->source, codes);
  double begun = log_seconds();
  TRY(detect_run(&task, &j->run->comm, result));
  log_info("detect  rows=%lld atoms=%d threshold_rows=%lld silent=%lld mean_f1=%.6g seconds=%.2f",
           (long long)task.rows->n, task.atoms->k, (long long)result->rows,
           (long long)result->silent, result->mean_f1, log_seconds() - begun);
  return OK;
}

int fit_detectors_run(struct fit_job *j)
{
  struct comm *c = &j->run->comm;
  struct supports_input codes = {0};
  char file[sizeof j->files.job.more[FIT_SUPPORTS].file] = {0};
  if (!j->o->detectors) return OK;
  TRY(codes_find(j, file, sizeof file));
  TRY(inputs_agree(c, supports_input_open(&codes, file)));
  TRY(detectors_find(j, &codes.source, &j->detected));
  TRY(inputs_confirm(c));
  supports_input_close(&codes);
  j->extra.detectors = (struct detectors){j->task.k, j->rows.source.p, j->detected.weights,
                                          j->detected.threshold, j->detected.firing};
  return fit_files_end(&j->files);
}
