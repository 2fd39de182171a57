/* SPDX-License-Identifier: BSD-3-Clause
 * The numbers are those of the forecast, for rank 0, which takes the most. */
#include "cli/encode_plan.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "job/facts.h"
#include "io/supports.h"

static int plan_json(const struct run *run, const struct encode_task *t,
                     const struct encode_memory *m, gidx disk)
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
  json_long(&j, "dictionary", m->atoms + m->forms + m->matrix);
  json_long(&j, "rows", m->rows);
  json_long(&j, "lists", m->lists);
  json_long(&j, "codes", m->codes);
  json_long(&j, "fetched", m->places + m->fetched);
  json_end(&j);
  json_long(&j, "present_bytes", memory_share(run->comm.local_size));
  json_long(&j, "disk_bytes", disk);
  return facts_end(&j);
}

int encode_plan_print(const struct run *run, const struct encode_task *t)
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
  if (facts_wanted(run)) return plan_json(run, t, &m, supports_bytes(&shape));
  int group = ranks / t->groups;
  gidx tiles = ceil_div(t->atoms->k, t->tile), blocks = ceil_div(t->rows->n, t->block);
  double work = encode_work(t);
  printf("grid        %d group%s of %d rank%s, each with all atoms\n", t->groups,
         t->groups == 1 ? "" : "s", group, group == 1 ? "" : "s");
  printf("rows        %lld x %d in %lld blocks of %d, %d a rank and block\n", (long long)t->rows->n,
         t->rows->p, (long long)blocks, t->block, (int)ceil_div(t->block, group));
  printf("dictionary  %d atoms of %d x %d in %lld tiles of %d, up to %lld tiles a rank\n",
         t->atoms->k, t->atoms->d, t->atoms->p, (long long)tiles, t->tile,
         (long long)ceil_div(tiles, group));
  printf("work        %.3g multiply-adds, %.3g a rank\n", work, work / ranks);
  gidx dictionary = m.atoms + m.forms + m.matrix, fetched = m.places + m.fetched;
  gidx total = dictionary + m.rows + m.lists + m.codes + fetched;
  printf("memory      %.1f MB a rank: dictionary %.1f, rows %.1f, lists %.1f, codes %.1f, fetched "
         "atoms %.1f\n",
         1e-6 * (double)total, 1e-6 * (double)dictionary, 1e-6 * (double)m.rows,
         1e-6 * (double)m.lists, 1e-6 * (double)m.codes, 1e-6 * (double)fetched);
  printf("present     %.1f MB a rank\n", 1e-6 * (double)memory_share(run->comm.local_size));
  printf("disk        %.1f MB%s\n", 1e-6 * (double)supports_bytes(&shape),
         t->encoder && t->top_s == t->atoms->k ? ", and 12 bytes for each code" : "");
  return OK;
}

idx cosine_limit_resolved(idx limit, idx k)
{
  enum { STANDARD = 65536 };
  return limit < k ? limit : k > STANDARD ? k : STANDARD;
}

idx encode_number_choose(idx option, idx fitted, idx most, idx standard, const char **by)
{
  *by = option          ? "as asked"
        : fitted > most ? "the most there may be, the dictionary was fitted with more"
        : fitted        ? "as the dictionary was fitted"
                        : "the dictionary does not say";
  return option ? option : fitted ? (idx)imin(fitted, most) : standard;
}
