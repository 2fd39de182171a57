/* SPDX-License-Identifier: BSD-3-Clause
 * What encode did, in three places: the log and tables, /run of the result, and run.json. */
#include "cli/encode_report.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/report.h"
#include "job/summary.h"
#include "io/encoder.h"

/* text <- "route=cuda codes=cuda ...": the devices of the phases that ran. */
static void phases_join(const struct encode_result *result, char *text, size_t capacity)
{
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < ENCODE_PHASES; i++) {
    const struct phase *p = &result->phases[i];
    if (p->calls && p->device && used < capacity)
      used += (size_t)snprintf(text + used, capacity - used, "%s%s=%s", used ? " " : "", p->name,
                               p->device);
  }
}

static int entries_json(const struct encode_task *t, const struct encode_result *r)
{
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", r->rows);
  json_long(own, "columns", t->rows->p);
  json_long(own, "atoms", t->atoms->k);
  json_long(own, "frame", t->atoms->d);
  json_long(own, "top_s", t->top_s);
  json_long(own, "rounds", t->rounds);
  json_hash(own, "fingerprint", r->fingerprint);
  return OK;
}

int encode_close(struct encode_files *files, const struct encode_result *result)
{
  const struct run *run = files->job.run;
  const struct encode_task *t = files->task;
  TRY(entries_json(t, result));
  const gidx *rows = result->filter.rows;
  struct run_fact facts[MAX_FACTS];
  char device[128], phases[256];
  snprintf(device, sizeof device, "%s %s", result->device, result->variant);
  phases_join(result, phases, sizeof phases);
  int n = run_facts(run, device, t->threads, facts);
  facts[n++] = (struct run_fact){"phase_devices", phases, 0};
  facts[n++] = (struct run_fact){"kernels", NULL, (double)result->counts.kernels};
  facts[n++] = (struct run_fact){"bytes_to_device", NULL, (double)result->counts.put};
  facts[n++] = (struct run_fact){"bytes_from_device", NULL, (double)result->counts.got};
  facts[n++] = (struct run_fact){"rows_certified", NULL, (double)rows[SCREEN_CERTIFIED]};
  facts[n++] = (struct run_fact){"rows_left_by_list", NULL, (double)rows[SCREEN_LIST]};
  facts[n++] = (struct run_fact){"rows_left_by_score", NULL, (double)rows[SCREEN_SCORE]};
  facts[n++] = (struct run_fact){"rows_left_by_guess", NULL, (double)rows[SCREEN_ESTIMATE]};
  facts[n++] = (struct run_fact){"rows_left_small", NULL, (double)rows[SCREEN_SMALL]};
  facts[n++] = (struct run_fact){"candidates", NULL, (double)result->filter.candidates};
  summary_inputs_set(&result->inputs);
  return encode_files_end(files, result, facts, n);
}

/* What the hashes of the result took; nothing where it was not written. */
static void hash_phase_fill(struct phase *phase, const struct phase *hashing)
{
  phase->calls = hashing->calls;
  phase->seconds = hashing->seconds;
  phase->work = hashing->work;
}

int encode_report(struct run *run, const struct encode_files *files, const struct encode_task *t,
                  struct encode_result *r, double seconds)
{
  char how[64];
  int gpu = strcmp(r->device, "cpu") != 0; /* its name is in the table of ranks */
  if (t->encoder)
    snprintf(how, sizeof how, "encoder=%s l0=%.4g", encode_kind_name(t), r->metrics.l0);
  else
    snprintf(how, sizeof how, "top_s=%d rounds=%d", t->top_s, t->rounds);
  log_info("%-7s rows=%lld atoms=%d %s ranks=%d device=%s%s%s seconds=%.2f fingerprint=%016llx",
           run->command->name, (long long)r->rows, t->atoms->k, how, run->comm.size, r->device,
           gpu ? "" : "/", gpu ? "" : r->variant, seconds, (unsigned long long)r->fingerprint);
  hash_phase_fill(&r->phases[PHASE_HASH], &files->file.hashing);
  TRY(report_phases(&run->comm, r->phases, ENCODE_PHASES));
  TRY(report_counts(&run->comm, &r->counts));
  TRY(report_filter(&run->comm, &r->filter));
  if (run->comm.rank == 0) report_metrics(&r->metrics, t->codes);
  return OK;
}
