/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a step of the server takes the rows of (L.1) to (L.5) of doc/live.md: in a table of cases,
 * in random cases as a plan does that deals rows one by one, and within the bounds of (L.5). */
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "model/admission.h"
#include "tap.h"

enum { M = 2048, Q = 512, JOBS = 4, LIVES = 6, TRIES = 100000, COLUMNS = 6 };

struct row { /* of the table */
  const char *name;
  struct admission_knobs knobs;
  int watched;
  gidx rows[COLUMNS][JOBS]; /* rows that each job gets, for each number of live rows */
};

static const gidx lives[COLUMNS] = {0, 8, 128, 600, 1900, 2048};

#define KNOBS(p, b, t)                                                                             \
  {                                                                                                \
    .policy = (p), .step_rows = M, .quantum = Q, .budget = (b), .target = (t), .file_period = 8    \
  }
#define FIRST(a, b, c, d)                                                                          \
  {                                                                                                \
    {a}, {b}, {c}, {d}, {148},                                                                     \
    {                                                                                              \
      0                                                                                            \
    }                                                                                              \
  }

static const struct row table[] = {
    {"off", KNOBS(ADMISSION_OFF, M, 1024), 1, FIRST(2048, 2040, 1920, 1448)},
    {"nobody watches", KNOBS(ADMISSION_DYNAMIC, M, 1024), 0, FIRST(2048, 2040, 1920, 1448)},
    {"nobody watches, static", KNOBS(ADMISSION_STATIC, 256, M), 0, FIRST(2048, 2040, 1920, 1448)},
    {"T = M", KNOBS(ADMISSION_DYNAMIC, M, M), 1, FIRST(2048, 2040, 1920, 1448)},
    {"T > M", KNOBS(ADMISSION_DYNAMIC, M, 3 * M), 1, FIRST(2048, 2040, 1920, 1448)},
    {"static", KNOBS(ADMISSION_STATIC, 256, M), 1, FIRST(256, 256, 256, 256)},
    {"T = q", KNOBS(ADMISSION_DYNAMIC, M, 512), 1, FIRST(512, 512, 512, 512)},
    {"T < q", KNOBS(ADMISSION_DYNAMIC, M, 100), 1, FIRST(512, 512, 512, 512)},
    {"T = 1024",
     KNOBS(ADMISSION_DYNAMIC, M, 1024),
     1,
     {{512, 300, 212}, {512, 300, 204}, {512, 300, 84}, {512}, {148}, {0}}},
    {"T = 1536",
     KNOBS(ADMISSION_DYNAMIC, M, 1536),
     1,
     {{768, 300, 300, 168}, {768, 300, 300, 160}, {768, 300, 300, 40}, {768, 168}, {148}, {0}}},
};

static void test_table(void)
{
  const struct admission_job jobs[JOBS] = {{6000, 0}, {300, 0}, {300, 0}, {300, 0}};
  claim_begin("admitted rows are those of the table");
  for (int t = 0; t < (int)(sizeof table / sizeof *table); t++)
    for (int l = 0; l < COLUMNS; l++) {
      struct admission_queues q = {3, table[t].watched, &lives[l], lives[l] > 0, jobs, JOBS};
      struct admission plan;
      gidx rows[JOBS];
      admission_plan(&table[t].knobs, &q, &plan, rows);
      ok(!memcmp(rows, table[t].rows[l], sizeof rows) && plan.live_rows == lives[l],
         "%s, L = %lld: %lld, %lld, %lld, %lld", table[t].name, (long long)lives[l],
         (long long)rows[0], (long long)rows[1], (long long)rows[2], (long long)rows[3]);
    }
  claim_end();
}

static void test_files(void)
{
  const struct admission_job jobs[] = {{100, 0}, {3000, 1}, {3000, 1}};
  const struct admission_knobs knobs = KNOBS(ADMISSION_DYNAMIC, M, 1024);
  struct admission_queues q = {7, 1, NULL, 0, jobs, 3};
  struct admission plan;
  gidx rows[3];
  claim_begin("files come after bulk requests, except in every eighth step");
  admission_plan(&knobs, &q, &plan, rows);
  ok(rows[0] == 100 && rows[1] == 512 && rows[2] == 412, "step 7: %lld, %lld, %lld",
     (long long)rows[0], (long long)rows[1], (long long)rows[2]);
  q.step = 8;
  admission_plan(&knobs, &q, &plan, rows);
  ok(rows[0] == 0 && rows[1] == 512 && rows[2] == 512, "step 8: %lld, %lld, %lld",
     (long long)rows[0], (long long)rows[1], (long long)rows[2]);
  claim_end();
}

struct trial {
  struct admission_knobs knobs;
  struct admission_queues q;
  gidx live[LIVES];
  struct admission_job jobs[JOBS];
};

static gidx draw(uint64_t *at, gidx bound)
{
  return (gidx)random_below(7, 1, (*at)++, (uint64_t)bound);
}

/* Draw a size: one near the limits, where mistakes show, or any. */
static gidx size_draw(uint64_t *at, gidx m, gidx q)
{
  const gidx sizes[] = {0, 1, q - 1, q, q + 1, m - 1, m, draw(at, m + 1)};
  return imin(imax(sizes[draw(at, 8)], 0), m);
}

static void trial_draw(struct trial *t, uint64_t *at)
{
  gidx m = 1 + draw(at, 40), q = 1 + draw(at, m);
  t->knobs = (struct admission_knobs){.policy = (enum admission_policy)draw(at, 3),
                                      .step_rows = m,
                                      .quantum = q,
                                      .budget = 1 + draw(at, m),
                                      .target = 1 + draw(at, m + 10),
                                      .job_cap = draw(at, 2) ? draw(at, m + 5) : 0,
                                      .file_period = 1 + draw(at, 4)};
  t->q = (struct admission_queues){draw(at, 20), (int)draw(at, 3) > 0, t->live, draw(at, LIVES + 1),
                                   t->jobs,      draw(at, JOBS + 1)};
  for (int i = 0; i < LIVES; i++) t->live[i] = size_draw(at, m, q);
  gidx bulk = draw(at, JOBS + 1);
  for (int j = 0; j < JOBS; j++)
    t->jobs[j] =
        (struct admission_job){draw(at, 3) ? size_draw(at, m, q) : draw(at, 5 * m), j >= bulk};
}

/* The most rows of all jobs by (L.2); *cap <- the most rows of one job by (L.3). */
static gidx limits_of(const struct trial *t, gidx live, gidx *cap)
{
  const struct admission_knobs *k = &t->knobs;
  gidx m = k->step_rows, aim;
  *cap = m;
  if (k->policy == ADMISSION_OFF || !t->q.watched) return m;
  if (k->policy == ADMISSION_STATIC) return k->budget < m ? k->budget : m;
  if (k->target >= m) return m;
  aim = k->target < k->quantum ? k->quantum : k->target;
  *cap = k->job_cap ? k->job_cap : t->q.n_jobs < 2 ? aim : (aim + 1) / 2;
  if (*cap < k->quantum) *cap = k->quantum;
  if (*cap > m) *cap = m;
  return aim - live < k->quantum ? k->quantum : aim - live;
}

/* The job of the next row: the first that has rows left and is below the cap.  Bulk requests come
 * first; in every file_period-th step files do.  If all jobs with rows left are at the cap, the
 * first of these.  -1: no job has rows left. */
static gidx next_job(const struct trial *t, const gidx *rows, gidx cap)
{
  int files = t->q.step % t->knobs.file_period == 0;
  for (int pass = 0; pass < 2; pass++)
    for (int kind = 0; kind < 2; kind++)
      for (gidx j = 0; j < t->q.n_jobs; j++)
        if (t->jobs[j].is_file == (kind ? !files : files) && rows[j] < t->jobs[j].left &&
            (pass || rows[j] < cap))
          return j;
  return -1;
}

static int trial_agrees(const struct trial *t)
{
  struct admission plan;
  gidx rows[JOBS], want[JOBS] = {0}, live = 0, n = 0, all = 0, cap, j;
  admission_plan(&t->knobs, &t->q, &plan, rows);
  for (; n < t->q.n_live; n++) {
    if (live + t->live[n] > t->knobs.step_rows) break;
    live += t->live[n];
  }
  gidx most = limits_of(t, live, &cap);
  while (all < most && live + all < t->knobs.step_rows && (j = next_job(t, want, cap)) >= 0)
    want[j]++, all++;
  return plan.n_live == n && plan.live_rows == live && plan.job_rows == all && plan.cap == cap &&
         !memcmp(rows, want, (size_t)t->q.n_jobs * sizeof *rows);
}

/* Do the bounds of (L.5) hold? */
static int trial_is_bounded(const struct trial *t)
{
  const struct admission_knobs *k = &t->knobs;
  struct admission p;
  gidx rows[JOBS], sum = 0, left = 0;
  admission_plan(k, &t->q, &p, rows);
  for (gidx j = 0; j < t->q.n_jobs; j++) sum += rows[j], left += t->jobs[j].left;
  int is_dynamic = k->policy == ADMISSION_DYNAMIC && t->q.watched && k->target < k->step_rows;
  return sum == imin(imin(left, p.allowance), k->step_rows - p.live_rows) &&
         p.live_rows + sum <= k->step_rows &&
         (!is_dynamic || p.live_rows + sum <= imax(p.target, p.live_rows + k->quantum));
}

static void test_brute(void)
{
  uint64_t at = 0;
  gidx bad = 0, unbounded = 0;
  for (int i = 0; i < TRIES; i++) {
    struct trial t;
    trial_draw(&t, &at);
    bad += !trial_agrees(&t);
    unbounded += !trial_is_bounded(&t);
  }
  ok(bad == 0, "%d random steps admit the rows that are dealt one by one (%lld do not)", TRIES,
     (long long)bad);
  ok(unbounded == 0, "(L.5) holds for random steps (not for %lld)", (long long)unbounded);
}

static void test_knobs(void)
{
  const struct admission_knobs good = KNOBS(ADMISSION_STATIC, 256, M);
  struct admission_knobs k = good;
  claim_begin("knobs out of range are named");
  ok(admission_check(&k) == OK, "good knobs are accepted");
  k.quantum = M + 1;
  ok(admission_check(&k) == ERR_USAGE && strstr(status_message(), "'--quantum' is 2049: it has"),
     "a quantum above the step: %s", status_message());
  status_clear();
  k = good, k.budget = 0;
  ok(admission_check(&k) == ERR_USAGE && strstr(status_message(), "'--budget' is 0"), "budget: %s",
     status_message());
  status_clear();
  k = good, k.file_period = 0;
  ok(admission_check(&k) == ERR_USAGE && strstr(status_message(), "'--file-period' is 0"),
     "period: %s", status_message());
  claim_end();
}

int main(void)
{
  test_table();
  test_files();
  test_brute();
  test_knobs();
  return done_testing();
}
