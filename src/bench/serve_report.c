/* SPDX-License-Identifier: BSD-3-Clause
 * Prints a line for each case, then the goals. */
#include "bench/serve_report.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"

static const char *const case_names[CASES] = {"encode", "alone",   "off",
                                              "static", "dynamic", "unwatched"};

/* A goal: a measured value (NaN if it was not measured), and the most that it should be. */
struct goal {
  const char *name;
  double value, most;
};

static void goals_find(const struct serve_measured *r, real target_ms, struct goal *g)
{
  const struct serve_measured *off = &r[OFF], *dynamic = &r[DYNAMIC];
  double status = fmax(fmax(off->status, r[STATIC].status), dynamic->status);
  g[0] = (struct goal){"dynamic p99 / off p99", dynamic->p99 / off->p99, 0.25};
  g[1] = (struct goal){"dynamic p99 - alone p99, in targets",
                       (dynamic->p99 - r[ALONE].p99) / target_ms, 2};
  g[2] = (struct goal){"off backlog / dynamic backlog", off->backlog / dynamic->backlog, 1 / 0.85};
  g[3] = (struct goal){"encode / unwatched backlog", r[ENCODE].backlog / r[UNWATCHED].backlog,
                       1 / 0.98};
  g[4] = (struct goal){"longest status request, ms", status, 10};
}
enum { GOALS = 5 };

static void line_json(struct json *j, const char *name, const struct serve_measured *m)
{
  json_object(j, NULL);
  json_text(j, "name", name);
  json_long(j, "requests", m->requests);
  json_long(j, "refused", m->refused);
  json_long(j, "lost", m->lost);
  json_real(j, "p50_ms", m->p50);
  json_real(j, "p99_ms", m->p99);
  json_real(j, "max_ms", m->most);
  json_real(j, "status_ms", m->status);
  json_real(j, "backlog_rows_per_second", m->backlog);
  json_long(j, "steps", m->steps);
  json_long(j, "target", m->target);
  json_end(j);
}

static void all_json(const struct bench_serve_options *o, const struct bench_route_options *shape,
                     struct json *j, const struct serve_measured *results, const struct goal *goals)
{
  json_long(j, "rows", shape->n_rows);
  json_long(j, "columns", shape->columns);
  json_long(j, "atoms", shape->atoms);
  json_long(j, "top_s", shape->top_s);
  json_long(j, "streams", o->streams);
  json_real(j, "rate", o->rate);
  json_real(j, "target_ms", o->target_ms);
  json_array(j, "lines");
  for (int i = 0; i < CASES; i++) line_json(j, case_names[i], &results[i]);
  json_end(j);
  json_array(j, "goals");
  for (int i = 0; i < GOALS; i++) {
    json_object(j, NULL);
    json_text(j, "name", goals[i].name);
    json_real(j, "value", goals[i].value);
    json_real(j, "most", goals[i].most);
    json_end(j);
  }
  json_end(j);
}

static void all_print(const struct bench_serve_options *o, const struct bench_route_options *s,
                      const struct bench_common *common, const struct serve_measured *results,
                      const struct goal *goals)
{
  printf("%d streams of %g rows/s, steps of at most %d rows of %d columns, %d of %d atoms a row, "
         "threads=%d device=%s\n",
         o->streams, o->rate, s->n_rows, s->columns, s->top_s, s->atoms, common->threads,
         common->device);
  printf("%-10s %9s %9s %9s %9s %10s %12s %8s %8s %8s\n", "", "p50 ms", "p99 ms", "max ms",
         "requests", "status ms", "backlog/s", "steps", "target", "lost");
  for (int i = 0; i < CASES; i++) {
    const struct serve_measured *m = &results[i];
    printf("%-10s %9.3f %9.3f %9.3f %9lld %10.3f %12.0f %8lld %8lld %8lld\n", case_names[i], m->p50,
           m->p99, m->most, (long long)m->requests, m->status, m->backlog, (long long)m->steps,
           (long long)m->target, (long long)(m->lost + m->refused));
  }
  for (int i = 0; i < GOALS; i++)
    printf("%-36s %9.3f, goal: at most %.3f\n", goals[i].name, goals[i].value, goals[i].most);
}

void serve_report(const struct bench_serve_options *o, const struct bench_route_options *shape,
                  const struct bench_common *common, const struct serve_measured *results)
{
  struct goal goals[GOALS];
  goals_find(results, o->target_ms, goals);
  if (common->json)
    all_json(o, shape, common->json, results, goals);
  else
    all_print(o, shape, common, results, goals);
}
