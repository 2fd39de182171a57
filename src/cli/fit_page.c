/* SPDX-License-Identifier: BSD-3-Clause
 * The page is put together in memory, and is then one write to a temporary file. */
#include "cli/fit_page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/watchdog.h"

enum { PAGE_VERSION = 1 };

int fit_page_claim(struct fit_page *p, const struct output_place *beside)
{
  char folder[4096], path[4096 + 16];
  path_folder(beside->shown, folder);
  snprintf(path, sizeof path, "%s/run.json", folder);
  return output_claim(path, 1, p->path);
}

void fit_page_free(struct fit_page *p)
{
  arena_free(&p->arena);
  *p = (struct fit_page){0};
}

int fit_page_take(struct fit_page *p, const struct fit_point *point, gidx best)
{
  gidx n = point->sweep + 1;
  if (n > p->lines_max) {
    p->lines_max = 2 * n;
    TRY(arena_alloc(&p->arena, &p->lines, p->lines_max, sizeof *p->lines));
  }
  memcpy(p->lines, point->lines, (size_t)n * sizeof *p->lines);
  p->sweep = point->sweep;
  p->best = best;
  p->rows_hash = point->rows_hash;
  p->held_hash = point->held_hash;
  return OK;
}

static void hash_tell(struct json *j, const char *key, uint64_t hash)
{
  char text[24];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
  json_text(j, key, text);
}

static void options_object(const struct fit_page *p, struct json *j)
{
  json_object(j, "options");
  options_json(p->run->command->options, p->run->options, j);
  json_end(j);
}

/* What /run of a result says too. */
static void run_tell(const struct fit_page *p, struct json *j)
{
  static const char *const told[] = {"version", "revision", "command", "started"};
  struct run_fact facts[MAX_FACTS];
  int n = run_facts(p->run, "", p->task->threads, facts);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < LENGTH(told); k++)
      if (strcmp(facts[i].name, told[k]) == 0) json_text(j, told[k], facts[i].text);
  options_object(p, j);
  json_long(j, "ranks", p->run->comm.size);
  json_long(j, "threads", p->task->threads);
  json_text(j, "device", p->encoded ? p->encoded->device : NULL);
  json_text(j, "variant", p->encoded ? p->encoded->variant : NULL);
}

static void input_tell(struct json *j, const char *key, const char *name, uint64_t hash)
{
  json_object(j, key);
  json_text(j, "name", name);
  hash_tell(j, "rows_hash", hash);
  json_end(j);
}

static void task_tell(const struct fit_page *p, struct json *j)
{
  const struct fit_task *t = p->task;
  const char *held = p->holdout ? p->holdout : p->rows;
  json_object(j, "inputs");
  input_tell(j, "rows", p->rows, p->rows_hash);
  if (p->result->held_rows) input_tell(j, "held_out", held, p->held_hash);
  json_end(j);
  json_long(j, "rows", p->result->fitted_rows);
  json_long(j, "held_rows", p->result->held_rows);
  json_long(j, "columns", t->rows->p);
  json_long(j, "atoms", t->k);
  json_long(j, "top_s", p->result->top_s);
  json_long(j, "rounds", t->rounds);
  json_text(j, "codes", t->nonnegative ? "nonnegative" : "signed");
  json_text(j, "update", t->update == UPDATE_JOINT ? "joint" : "atoms");
}

/* Of sweeps of an earlier run the files know neither moves nor times. */
static void line_tell(const struct fit_page *p, const struct fit_line *l, struct json *j)
{
  real none = nan_canonical();
  int is_own = l->sweep > p->first;
  json_object(j, NULL);
  json_long(j, "sweep", l->sweep);
  json_real(j, "unseen", l->held);
  json_real(j, "fitted", l->fitted);
  json_long(j, "dead", l->dead);
  json_long(j, "revived", l->revived);
  json_long(j, "accepted", l->accepted);
  json_long(j, "rejected", l->rejected);
  json_long(j, "escalated", l->escalated);
  json_real(j, "move", is_own ? l->move : none);
  json_real(j, "seconds", is_own ? l->seconds : none);
  json_end(j);
}

static void lines_tell(const struct fit_page *p, struct json *j)
{
  json_array(j, "sweeps");
  for (gidx i = 0; i <= p->sweep; i++) line_tell(p, &p->lines[i], j);
  json_end(j);
  json_long(j, "best_sweep", p->best);
  json_real(j, "unseen", p->lines[p->best].held);
  json_real(j, "fitted", p->lines[p->best].fitted);
}

static void metrics_tell(const struct metrics *m, struct json *j)
{
  json_object(j, "metrics");
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    const char *at = (const char *)m + row->offset;
    gidx whole;
    real value;
    memcpy(&whole, at, sizeof whole);
    memcpy(&value, at, sizeof value);
    if (row->is_integer)
      json_long(j, row->name, whole);
    else
      json_real(j, row->name, value);
  }
  json_end(j);
}

static void end_tell(const struct fit_page *p, struct json *j)
{
  static const char *const ends[] = {
      [FIT_SETTLED] = "tolerance", [FIT_SWEEPS] = "sweeps", [FIT_SECONDS] = "max-seconds"};
  json_real(j, "seconds", p->seconds);
  json_text(j, "end", p->encoded ? ends[p->result->end] : NULL);
  if (!p->encoded) return;
  metrics_tell(&p->encoded->metrics, j);
  hash_tell(j, "fingerprint", p->encoded->fingerprint);
}

/* *text <- the page, which the caller frees. */
static int page_make(const struct fit_page *p, char **text, size_t *bytes)
{
  struct json j = {.out = open_memstream(text, bytes)};
  CHECK(j.out, ERR_MEMORY, "cannot allocate run.json");
  json_object(&j, NULL);
  json_text(&j, "format", "sagitta fit");
  json_long(&j, "format_version", PAGE_VERSION);
  run_tell(p, &j);
  task_tell(p, &j);
  lines_tell(p, &j);
  end_tell(p, &j);
  json_end(&j);
  int failed = ferror(j.out) != 0;
  failed = fclose(j.out) || failed;
  CHECK(!failed, ERR_MEMORY, "cannot allocate run.json");
  return OK;
}

/* Write all of it past the stream's buffer. */
static int text_write(const char *name, FILE *file, const char *text, size_t bytes)
{
  int step = watchdog_begin(ERR_IO, "writing", name), error = 0;
  for (size_t done = 0; done < bytes && !error;) {
    ssize_t n = write(fileno(file), text + done, bytes - done);
    if (n > 0)
      done += (size_t)n;
    else if (errno != EINTR)
      error = errno;
  }
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot write '%s': %s", name, strerror(error));
  return OK;
}

static int text_publish(const char *path, const char *text, size_t bytes)
{
  struct temporary t;
  FILE *file;
  TRY(temporary_create(&t, path, NULL, &file));
  int status = text_write(t.name, file, text, bytes), closed = temporary_close(&t, file);
  if (!status) status = closed;
  if (!status) status = temporary_publish(&t);
  if (status) temporary_drop(&t);
  return status;
}

void fit_page_write(const struct fit_page *p)
{
  char *text = NULL;
  size_t bytes = 0;
  int status = page_make(p, &text, &bytes);
  if (!status) status = text_publish(p->path, text, bytes);
  free(text);
  if (!status) return;
  log_warn("%s: what is there is not of the last sweep", status_message());
  status_clear();
}
