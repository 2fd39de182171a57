/* SPDX-License-Identifier: BSD-3-Clause
 * The plan has the forecast of rank 0, which needs the most memory.  Results are reported in three
 * places: the log with its tables, /run of the result, and run.json. */
#include "cli/encode_report.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/report.h"
#include "encoding/encode_ranks.h"
#include "io/encoder.h"
#include "io/supports.h"
#include "job/summary.h"
#include "refit/layout.h"

/* Rows of a segment: with --join a range begins and ends between segments.  0: --join is
 * impossible, because chunks of this shape have no fixed places in the file. */
static gidx segment_rows(const struct encode_task *t)
{
  const struct supports_shape shape = encode_shape(t, t->whole ? t->whole->n : t->rows->n);
  return supports_segment_rows(&shape);
}

static int plan_json(const struct run *run, const struct encode_task *t,
                     const struct encode_memory *m, gidx disk, const struct plan_rates *rates,
                     const struct times *times)
{
  struct json j;
  int group = run->comm.size / t->groups;
  TRY(facts_begin(run, &j));
  json_long(&j, "groups", t->groups);
  json_long(&j, "group_ranks", group);
  json_long(&j, "rows", t->rows->n);
  json_long(&j, "columns", t->rows->p);
  json_long(&j, "block", t->block);
  json_long(&j, "blocks", ceil_div(t->rows->n, t->block));
  json_long(&j, "atoms", t->atoms->k);
  json_long(&j, "frame", t->atoms->d);
  json_long(&j, "tile", t->tile);
  json_long(&j, "tiles", ceil_div(t->atoms->k, t->tile));
  json_real(&j, "multiply_adds", encode_work(t));
  json_object(&j, "rank_bytes");
  json_long(&j, "program", memory_program());
  json_long(&j, "dictionary", m->atoms + m->forms + m->matrix);
  json_long(&j, "rows", m->rows);
  json_long(&j, "lists", m->lists);
  json_long(&j, "codes", m->codes);
  json_long(&j, "fetched", m->places + m->fetched);
  json_end(&j);
  json_long(&j, "present_bytes", memory_per_process(run->comm.local_size));
  json_long(&j, "disk_bytes", disk);
  if (segment_rows(t)) json_long(&j, "segment_rows", segment_rows(t));
  TRY(report_times_json(rates, times, &j));
  return facts_end(&j);
}

int encode_plan_print(const struct run *run, const struct encode_task *t,
                      const struct plan_rates *rates, const struct times *times)
{
  const struct supports_shape shape = {.n = t->rows->n,
                                       .k = t->atoms->k,
                                       .s = t->top_s,
                                       .d = t->atoms->d,
                                       .p = t->rows->p,
                                       .has_codes = t->codes,
                                       .encoder = encode_kind_name(t)};
  struct encode_memory m;
  int ranks = run->comm.size;
  if (run->comm.rank) return OK;
  TRY(encode_memory(t, ranks, 0, &m));
  if (run->wants_json) return plan_json(run, t, &m, supports_bytes(&shape), rates, times);
  int group = ranks / t->groups;
  gidx tiles = ceil_div(t->atoms->k, t->tile), blocks = ceil_div(t->rows->n, t->block);
  double work = encode_work(t);
  printf("grid        %d group%s of %d rank%s, each with all atoms\n", t->groups,
         t->groups == 1 ? "" : "s", group, group == 1 ? "" : "s");
  printf("rows        %lld x %d in %lld blocks of %d rows, %d for each rank and block\n",
         (long long)t->rows->n, t->rows->p, (long long)blocks, t->block,
         (int)ceil_div(t->block, group));
  printf("dictionary  %d atoms of %d x %d in %lld tiles of %d, up to %lld tiles a rank\n",
         t->atoms->k, t->atoms->d, t->atoms->p, (long long)tiles, t->tile,
         (long long)ceil_div(tiles, group));
  printf("work        %.3g multiply-adds, %.3g a rank\n", work, work / ranks);
  gidx dictionary = m.atoms + m.forms + m.matrix, fetched = m.places + m.fetched;
  gidx total = memory_program() + dictionary + m.rows + m.lists + m.codes + fetched;
  printf("memory      %.1f MB a rank: program %.1f, dictionary %.1f, rows %.1f, lists %.1f, codes "
         "%.1f, fetched atoms %.1f\n",
         1e-6 * (double)total, 1e-6 * (double)memory_program(), 1e-6 * (double)dictionary,
         1e-6 * (double)m.rows, 1e-6 * (double)m.lists, 1e-6 * (double)m.codes,
         1e-6 * (double)fetched);
  printf("present     %.1f MB a rank\n", 1e-6 * (double)memory_per_process(run->comm.local_size));
  printf("disk        %.1f MB%s\n", 1e-6 * (double)supports_bytes(&shape),
         t->encoder && t->top_s == t->atoms->k ? ", and 12 bytes for each code" : "");
  if (segment_rows(t))
    printf("segments    of %lld rows, where ranges with --join begin and end\n",
           (long long)segment_rows(t));
  return report_times(rates, times);
}

idx cosine_limit_resolved(idx limit, idx k)
{
  enum { STANDARD = 65536 };
  return limit < k ? limit : k > STANDARD ? k : STANDARD;
}

idx encode_number_choose(idx option, idx fitted, idx most, idx standard, const char **by)
{
  *by = option          ? "as asked"
        : fitted > most ? "the largest possible number, the dictionary was fitted with more"
        : fitted        ? "as the dictionary was fitted"
                        : "the default, since the dictionary does not say";
  return option ? option : fitted ? (idx)imin(fitted, most) : standard;
}

/* text[capacity] <- "route=cuda codes=cuda ...": the phases that ran, and their devices. */
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

/* Fill in the time and work of hashing the result; they are 0 if nothing was written. */
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
  int gpu = strcmp(r->device, "cpu") != 0; /* a GPU's name is in the lines about ranks */
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
