/* SPDX-License-Identifier: BSD-3-Clause
 * A step has the rows of its requests in the order in which they were admitted.  Rows of files are
 * left out.  This changes no result, because the results of a row do not depend on other rows. */
#include "serve/replay.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "model/access.h"
#include "model/identity.h"
#include "serve/ranks.h"

struct replay {
  const struct replay_task *task;
  struct ranks ranks;
  struct worker worker;
  gidx *first;     /* [requests + 1] the first row of each request in the source */
  uint64_t *terms; /* [requests] sums of the hash terms of their results so far */
  gidx part;       /* the next line of ledger->parts */
  struct arena arena;
};

static const gidx *part_of(const struct replay *r, gidx i)
{
  return r->task->ledger->parts.values + i * PART_COLUMNS;
}

static const gidx *request_of(const struct replay *r, gidx i)
{
  return r->task->ledger->requests.values + i * REQUEST_COLUMNS;
}

static int replay_open(struct replay *r, struct comm *c)
{
  const struct replay_task *t = r->task;
  gidx n = t->ledger->requests.count;
  TRY(arena_alloc(&r->arena, &r->first, n + 1, sizeof *r->first));
  TRY(arena_alloc(&r->arena, &r->terms, n, sizeof *r->terms));
  for (gidx i = 0; i < n; i++) r->first[i + 1] = r->first[i] + request_of(r, i)[REQUEST_ROWS];
  CHECK(t->rows->n == r->first[n], ERR_INPUT,
        "'%s' has %lld rows, the requests of its ledger have %lld", t->rows->name,
        (long long)t->rows->n, (long long)r->first[n]);
  TRY(ranks_open(&r->ranks, t->encode, c));
  uint64_t hash = lane_dictionary(r->ranks.lane);
  CHECK(hash == t->dictionary, ERR_INPUT,
        "the dictionary is %016llx, that of the ledger is %016llx", (unsigned long long)hash,
        (unsigned long long)t->dictionary);
  return worker_open(&r->worker);
}

/* Copy the rows of a part into the step, after its first n rows. */
static int part_load(struct replay *r, const gidx *part, gidx n)
{
  idx p = r->task->encode->rows->p;
  gidx rows = part[PART_ROWS], first = r->first[part[PART_REQUEST]] + part[PART_FIRST];
  TRY(rows_access(&r->worker, (struct rows_access){r->task->rows, first, rows,
                                                   lane_rows(r->ranks.lane, 0) + n * p}));
  lane_center(r->ranks.lane, 0, n, rows);
  return OK;
}

/* Add the results of a part to the hash terms of its request.  The results begin at row `at` of the
 * block. */
static void part_count(struct replay *r, const gidx *part, const struct support_block *b, gidx at)
{
  gidx rows = part[PART_ROWS], first = part[PART_FIRST], from = at * b->s;
  uint64_t *terms = &r->terms[part[PART_REQUEST]];
  *terms += support_terms(b->atoms + from, rows, b->s, first);
  *terms += codes_terms(b->score + from, b->codes + from * b->d, rows * b->s, b->d, first * b->s);
}

static int step_replay(struct replay *r, gidx step)
{
  struct support_block block;
  gidx begin = r->part, count = r->task->ledger->parts.count, n = 0;
  for (; r->part < count && part_of(r, r->part)[PART_STEP] == step; r->part++) {
    const gidx *part = part_of(r, r->part);
    if (part[PART_REQUEST] < 0) continue;
    TRY(part_load(r, part, n));
    n += part[PART_ROWS];
  }
  if (!n) return OK;
  TRY(ranks_put(&r->ranks, 0, (idx)n));
  TRY(ranks_run(&r->ranks, (idx)n, &block));
  n = 0;
  for (gidx i = begin; i < r->part; i++) {
    const gidx *part = part_of(r, i);
    if (part[PART_REQUEST] < 0) continue;
    part_count(r, part, &block, n);
    n += part[PART_ROWS];
  }
  return OK;
}

static void compare(const struct replay *r, struct replay_result *result)
{
  for (gidx i = 0; i < r->task->ledger->requests.count; i++) {
    const gidx *request = request_of(r, i);
    if (request[REQUEST_GONE] < 0 || request[REQUEST_STATUS]) continue;
    result->requests++;
    if ((uint64_t)request[REQUEST_TERMS] == r->terms[i]) continue;
    if (!result->differ++) result->first = i;
  }
}

static int steps_replay(struct replay *r, struct replay_result *result)
{
  for (gidx i = 0; i < result->steps; i++) TRY(step_replay(r, i));
  compare(r, result);
  return ranks_end(&r->ranks);
}

int replay_run(const struct replay_task *task, struct comm *c, struct replay_result *result)
{
  struct replay *r;
  *result = (struct replay_result){.steps = task->ledger->steps.count, .first = -1};
  TRY(struct_alloc(&r, sizeof *r));
  r->task = task;
  TRY(replay_open(r, c));
  TRY(c->rank ? ranks_follow(&r->ranks) : steps_replay(r, result));
  worker_close(&r->worker);
  arena_free(&r->arena);
  TRY(ranks_close(&r->ranks));
  free(r);
  return OK;
}
