/* SPDX-License-Identifier: BSD-3-Clause
 * The queues are followed from step to step: a request joins at step REQUEST_SEEN and leaves at
 * step REQUEST_GONE. */
#include "model/ledger.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"

/* The queues, and the state of the comparison with the plans. */
struct follower {
  const struct ledger *l;
  gidx *waiting[2]; /* [requests] numbers of waiting live and bulk requests, by arrival */
  gidx count[2];
  gidx *done; /* [requests] rows that were admitted so far */
  gidx *live, *rows;
  gidx *asked; /* [jobs] the request of each bulk job */
  struct admission_job *jobs;
  gidx next, part;       /* next request that will be seen; next part to compare */
  gidx file, file_first; /* line of the current file; its last row so far, plus 1 */
  struct arena arena;
};

static const gidx *step_of(const struct ledger *l, gidx n)
{
  return l->steps.values + n * STEP_COLUMNS;
}

static const gidx *request_of(const struct ledger *l, gidx i)
{
  return l->requests.values + i * REQUEST_COLUMNS;
}

/* Rows of a request that are not yet admitted. */
static gidx left_of(const struct follower *f, gidx i)
{
  return request_of(f->l, i)[REQUEST_ROWS] - f->done[i];
}

/* Check the numbers of one line of the table of requests. */
static int request_check(const struct ledger *l, gidx i)
{
  const gidx *r = request_of(l, i);
  gidx steps = l->steps.count, gone = r[REQUEST_GONE],
       before = i ? r[-REQUEST_COLUMNS + REQUEST_SEEN] : 0;
  CHECK(r[REQUEST_CLASS] == 0 || r[REQUEST_CLASS] == 1, ERR_INPUT,
        "request %lld is of class %lld: 0 is live, 1 bulk", (long long)i,
        (long long)r[REQUEST_CLASS]);
  CHECK(r[REQUEST_ROWS] >= 0 && r[REQUEST_ROWS] <= INT32_MAX, ERR_INPUT,
        "request %lld has %lld rows", (long long)i, (long long)r[REQUEST_ROWS]);
  CHECK(r[REQUEST_SEEN] >= before && r[REQUEST_SEEN] <= steps, ERR_INPUT,
        "request %lld was seen by step %lld, that before it by %lld, of %lld", (long long)i,
        (long long)r[REQUEST_SEEN], (long long)before, (long long)steps);
  CHECK(gone == -1 || (gone >= r[REQUEST_SEEN] && gone <= steps), ERR_INPUT,
        "request %lld was seen by step %lld, and gone at step %lld of %lld", (long long)i,
        (long long)r[REQUEST_SEEN], (long long)gone, (long long)steps);
  CHECK(r[REQUEST_ANSWERED] == -1 || r[REQUEST_ANSWERED] >= r[REQUEST_ARRIVED], ERR_INPUT,
        "request %lld was answered before it arrived", (long long)i);
  return OK;
}

/* Remove from a queue the requests that are gone at step n. */
static void queue_prune(struct follower *f, int class, gidx n)
{
  gidx kept = 0;
  for (gidx j = 0; j < f->count[class]; j++) {
    gidx i = f->waiting[class][j], gone = request_of(f->l, i)[REQUEST_GONE];
    if (gone < 0 || gone > n) f->waiting[class][kept++] = i;
  }
  f->count[class] = kept;
}

/* The queues as the plan of step n saw them. */
static struct admission_queues queues_find(struct follower *f, gidx n)
{
  const struct ledger *l = f->l;
  const gidx *step = step_of(l, n);
  for (; f->next < l->requests.count && request_of(l, f->next)[REQUEST_SEEN] <= n; f->next++) {
    int class = (int)request_of(l, f->next)[REQUEST_CLASS];
    f->waiting[class][f->count[class]++] = f->next;
  }
  for (int class = 0; class < 2; class ++) queue_prune(f, class, n);
  for (gidx j = 0; j < f->count[0]; j++) f->live[j] = left_of(f, f->waiting[0][j]);
  gidx jobs = 0;
  for (gidx j = 0; j < f->count[1]; j++) {
    gidx i = f->waiting[1][j], left = left_of(f, i);
    /* A request of which all rows are admitted only waits for its last step to end. */
    if (left == 0 && request_of(f->l, i)[REQUEST_ROWS]) continue;
    f->asked[jobs] = i;
    f->jobs[jobs++] = (struct admission_job){left, 0};
  }
  if (step[STEP_FILE_ROWS] > 0) f->jobs[jobs++] = (struct admission_job){step[STEP_FILE_ROWS], 1};
  return (struct admission_queues){n, step[STEP_WATCHED] != 0, f->live, f->count[0], f->jobs, jobs};
}

/* Compare the step's line with the plan. */
static int step_check(const struct follower *f, gidx n, const struct admission *plan)
{
  static const char *const names[] = {"number", "rows of live requests", "target", "rows for jobs",
                                      "cap of a job"};
  const gidx *s = step_of(f->l, n);
  const gidx said[] = {s[STEP_NUMBER], s[STEP_LIVE], s[STEP_TARGET], s[STEP_ALLOWANCE],
                       s[STEP_CAP]};
  const gidx planned[] = {n, plan->live_rows, plan->target, plan->allowance, plan->cap};
  for (int i = 0; i < LENGTH(said); i++)
    CHECK(said[i] == planned[i], ERR_INPUT, "step %lld: the %s is %lld, and %lld by its plan",
          (long long)n, names[i], (long long)said[i], (long long)planned[i]);
  CHECK(s[STEP_WATCHED] == 1 || (s[STEP_WATCHED] == 0 && f->count[0] == 0), ERR_INPUT,
        "step %lld: w is %lld while %lld live requests wait", (long long)n,
        (long long)s[STEP_WATCHED], (long long)f->count[0]);
  /* two steps may overlap, so this step may begin before the step before it ends */
  const gidx *before = n ? s - STEP_COLUMNS : s;
  CHECK(s[STEP_ENDED] >= s[STEP_BEGUN] && s[STEP_BEGUN] >= before[STEP_BEGUN] &&
            s[STEP_ENDED] >= before[STEP_ENDED],
        ERR_INPUT, "step %lld: it began or ended before the one before it", (long long)n);
  return OK;
}

/* The next part if it is of this step; NULL otherwise. */
static const gidx *part_next(struct follower *f, gidx n)
{
  const struct ledger_table *t = &f->l->parts;
  const gidx *p = t->values + f->part * PART_COLUMNS;
  if (f->part == t->count || p[PART_STEP] != n) return NULL;
  f->part++;
  return p;
}

/* Check that the next part has the rows of the request that the plan admits, and that they follow
 * the rows of the request that were admitted before. */
static int request_admit(struct follower *f, gidx n, gidx i, gidx rows)
{
  if (rows == 0) return OK;
  const gidx *p = part_next(f, n);
  CHECK(p, ERR_INPUT, "step %lld has no rows of request %lld: by its plan it has %lld",
        (long long)n, (long long)i, (long long)rows);
  CHECK(p[PART_REQUEST] == i && p[PART_FILE] == 0 && p[PART_FIRST] == f->done[i] &&
            p[PART_ROWS] == rows,
        ERR_INPUT,
        "step %lld has %lld rows of request %lld from row %lld on: by its plan %lld of request "
        "%lld from row %lld on",
        (long long)n, (long long)p[PART_ROWS], (long long)p[PART_REQUEST], (long long)p[PART_FIRST],
        (long long)rows, (long long)i, (long long)f->done[i]);
  f->done[i] += rows;
  return OK;
}

/* A live request is admitted whole, and leaves its queue with this step. */
static int live_admit(struct follower *f, gidx n, gidx i, gidx rows)
{
  gidx gone = request_of(f->l, i)[REQUEST_GONE];
  TRY(request_admit(f, n, i, rows));
  CHECK(gone == n + 1 || (gone == -1 && n + 1 == f->l->steps.count), ERR_INPUT,
        "request %lld is gone at step %lld: step %lld had all of it", (long long)i, (long long)gone,
        (long long)n);
  return OK;
}

/* Check that the next parts have the rows of files that the plan admits; there may be several
 * parts. */
static int file_admit(struct follower *f, gidx n, gidx rows)
{
  while (rows > 0) {
    const gidx *p = part_next(f, n);
    CHECK(p && p[PART_REQUEST] == -1 && p[PART_ROWS] > 0 && p[PART_ROWS] <= rows, ERR_INPUT,
          "step %lld: %lld more rows of files were planned, and %lld follow", (long long)n,
          (long long)rows, (long long)(p ? p[PART_ROWS] : 0));
    int goes_on = p[PART_FILE] == f->file && p[PART_FIRST] == f->file_first;
    int begins = p[PART_FILE] >= f->file && p[PART_FILE] > 0 && p[PART_FIRST] == 0;
    CHECK(goes_on || begins, ERR_INPUT,
          "step %lld: rows of file %lld from row %lld on follow those of file %lld up to row %lld",
          (long long)n, (long long)p[PART_FILE], (long long)p[PART_FIRST], (long long)f->file,
          (long long)f->file_first);
    f->file = p[PART_FILE];
    f->file_first = p[PART_FIRST] + p[PART_ROWS];
    rows -= p[PART_ROWS];
  }
  return OK;
}

static int step_follow(struct follower *f, gidx n)
{
  struct admission plan;
  struct admission_queues q = queues_find(f, n);
  CHECK(step_of(f->l, n)[STEP_FILE_ROWS] >= 0, ERR_INPUT, "step %lld: %lld rows of a file wait",
        (long long)n, (long long)step_of(f->l, n)[STEP_FILE_ROWS]);
  admission_plan(&f->l->knobs, &q, &plan, f->rows);
  TRY(step_check(f, n, &plan));
  for (gidx j = 0; j < plan.n_live; j++) TRY(live_admit(f, n, f->waiting[0][j], f->live[j]));
  for (gidx j = 0; j < q.n_jobs; j++)
    if (q.jobs[j].is_file)
      TRY(file_admit(f, n, f->rows[j]));
    else
      TRY(request_admit(f, n, f->asked[j], f->rows[j]));
  const gidx *more = part_next(f, n);
  CHECK(!more, ERR_INPUT, "step %lld has %lld rows more than its plan", (long long)n,
        (long long)more[PART_ROWS]);
  return OK;
}

/* Check that steps took all rows of each request that has results. */
static int ends_check(const struct follower *f)
{
  const struct ledger *l = f->l;
  CHECK(f->part == l->parts.count, ERR_INPUT, "rows are admitted by step %lld, of %lld",
        (long long)l->parts.values[f->part * PART_COLUMNS + PART_STEP], (long long)l->steps.count);
  for (gidx i = 0; i < l->requests.count; i++) {
    const gidx *r = request_of(l, i);
    int has_all = f->done[i] == r[REQUEST_ROWS];
    CHECK(r[REQUEST_GONE] < 0 || r[REQUEST_STATUS] != 0 || has_all, ERR_INPUT,
          "request %lld was answered with results, and %lld of its %lld rows were admitted",
          (long long)i, (long long)f->done[i], (long long)r[REQUEST_ROWS]);
  }
  return OK;
}

static int follow(struct follower *f)
{
  const struct ledger *l = f->l;
  gidx n = l->requests.count;
  TRY(arena_alloc(&f->arena, &f->waiting[0], n, sizeof(gidx)));
  TRY(arena_alloc(&f->arena, &f->waiting[1], n, sizeof(gidx)));
  TRY(arena_alloc(&f->arena, &f->done, n, sizeof(gidx)));
  TRY(arena_alloc(&f->arena, &f->live, n, sizeof(gidx)));
  TRY(arena_alloc(&f->arena, &f->rows, n + 1, sizeof(gidx)));
  TRY(arena_alloc(&f->arena, &f->asked, n, sizeof(gidx)));
  TRY(arena_alloc(&f->arena, &f->jobs, n + 1, sizeof *f->jobs));
  for (gidx i = 0; i < n; i++) TRY(request_check(l, i));
  for (gidx i = 0; i < l->steps.count; i++) TRY(step_follow(f, i));
  return ends_check(f);
}

int ledger_check(const struct ledger *ledger)
{
  struct follower f = {.l = ledger};
  TRY(admission_check(&ledger->knobs));
  int status = follow(&f);
  arena_free(&f.arena);
  return status;
}
