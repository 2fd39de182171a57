/* SPDX-License-Identifier: BSD-3-Clause
 * The page is put together in memory, and is then one write to a temporary file. */
#include "cli/run_page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options_write.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "cli/about.h"
#include "cli/facts.h"
#include "io/companions.h"
#include "io/temporary.h"

enum { PAGE_VERSION = 1, MAX_PHASES = 48 };

static struct {
  struct page_phase phases[MAX_PHASES];
  int n_phases, has_metrics, has_codes;
  struct metrics metrics;
  struct identity inputs;
  char device[280];
  struct json own; /* entries, as they stand in an object */
  char *own_text;
  size_t own_bytes;
} noted;

void run_page_phase(const struct page_phase *phase)
{
  if (noted.n_phases < MAX_PHASES) noted.phases[noted.n_phases++] = *phase;
}

void run_page_metrics(const struct metrics *metrics, int has_codes)
{
  noted.metrics = *metrics;
  noted.has_codes = has_codes;
  noted.has_metrics = 1;
}

void run_page_device(const char *device)
{
  snprintf(noted.device, sizeof noted.device, "%s", device);
}

void run_page_inputs(const struct identity *inputs)
{
  noted.inputs = *inputs;
}

int run_page_own(struct json **j)
{
  FILE *memory = noted.own.out ? noted.own.out : open_memstream(&noted.own_text, &noted.own_bytes);
  CHECK(memory, ERR_MEMORY, "cannot allocate the entries of run.json");
  if (!noted.own.out) noted.own = (struct json){.out = memory, .depth = 1, .count = 1};
  *j = &noted.own;
  return OK;
}

void page_hash_tell(struct json *j, const char *key, uint64_t hash)
{
  char text[24];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
  json_text(j, key, text);
}

void page_metrics_tell(const struct metrics *m, int has_codes, struct json *j)
{
  json_object(j, "metrics");
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    const char *at = (const char *)m + row->offset;
    gidx whole;
    real value;
    if (row->needs_codes && !has_codes) continue;
    memcpy(&whole, at, sizeof whole);
    memcpy(&value, at, sizeof value);
    if (row->is_integer)
      json_long(j, row->name, whole);
    else
      json_real(j, row->name, value);
  }
  json_end(j);
}

static void libraries_tell(struct json *j)
{
  struct about a;
  about_find(&a);
  json_object(j, "libraries");
  json_text(j, "compiler", a.compiler);
  json_text(j, "mpi", a.mpi);
  json_text(j, "hdf5", a.hdf5);
  json_text(j, "cuda", a.cuda);
  json_text(j, "nccl", a.nccl);
  json_end(j);
}

/* Where each rank is, the cores that it may use, and its threads once they are known. */
static void seats_tell(const struct run *run, struct json *j)
{
  char cores[1024];
  json_array(j, "seats");
  for (int r = 0; r < run->comm.size && run->cores; r++) {
    cores_text(&run->cores[r].own, cores, sizeof cores);
    json_object(j, NULL);
    json_long(j, "rank", r);
    json_text(j, "host", run->cores[r].host);
    json_text(j, "cores", cores);
    if (run->threads) json_long(j, "threads", run->threads[r]);
    json_end(j);
  }
  json_end(j);
}

/* What /run of a result says too, and where the run is. */
static void run_tell(const struct run *run, struct json *j)
{
  static const char *const told[] = {"version", "revision", "command", "host", "started"};
  struct run_fact facts[MAX_FACTS];
  int n = run_facts(run, NULL, 0, facts);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < LENGTH(told); k++)
      if (strcmp(facts[i].name, told[k]) == 0) json_text(j, told[k], facts[i].text);
  json_object(j, "options");
  options_json(run->command->options, run->options, j);
  json_end(j);
  libraries_tell(j);
  json_text(j, "job", about_job());
  json_long(j, "ranks", run->comm.size);
  seats_tell(run, j);
}

static void phases_tell(struct json *j)
{
  json_array(j, "phases");
  for (int i = 0; i < noted.n_phases; i++) {
    const struct page_phase *p = &noted.phases[i];
    json_object(j, NULL);
    json_text(j, "name", p->name);
    json_long(j, "calls", p->calls);
    json_real(j, "least", p->least);
    json_real(j, "mean", p->mean);
    json_real(j, "most", p->most);
    json_text(j, "unit", p->unit);
    if (p->unit) json_real(j, "work", 1e-9 * p->work);
    json_text(j, "on", *p->on ? p->on : NULL);
    json_end(j);
  }
  json_end(j);
}

/* Entries of a command that has none of its own. */
static void own_tell(const void *self, struct json *j)
{
  static const char *const names[] = {"rows_hash",  "dictionary_hash", "supports_hash",
                                      "codes_hash", "classes_hash",    "encoder_hash"};
  const uint64_t hashes[] = {noted.inputs.rows,  noted.inputs.dictionary, noted.inputs.supports,
                             noted.inputs.codes, noted.inputs.classes,    noted.inputs.encoder};
  const struct run *run = self;
  if (noted.own.out && !fflush(noted.own.out)) fputs(noted.own_text, j->out);
  json_text(j, "device", *noted.device ? noted.device : NULL);
  json_object(j, "inputs");
  for (int i = 0; i < LENGTH(names); i++)
    if (hashes[i]) page_hash_tell(j, names[i], hashes[i]);
  json_end(j);
  if (noted.has_metrics) page_metrics_tell(&noted.metrics, noted.has_codes, j);
  json_real(j, "seconds", log_seconds());
  json_flag(j, "stopped", run->stopped);
}

/* *text <- the page, which the caller frees. */
static int page_make(const struct run *run, const char *format,
                     void (*tell)(const void *, struct json *), const void *self, char **text,
                     size_t *bytes)
{
  struct json j = {.out = open_memstream(text, bytes)};
  CHECK(j.out, ERR_MEMORY, "cannot allocate run.json");
  json_object(&j, NULL);
  json_text(&j, "format", format);
  json_long(&j, "format_version", PAGE_VERSION);
  run_tell(run, &j);
  tell(self, &j);
  phases_tell(&j);
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

void run_page_write(const struct run *run, const char *format,
                    void (*tell)(const void *self, struct json *j), const void *self)
{
  char *text = NULL;
  size_t bytes = 0;
  int status = page_make(run, format, tell, self, &text, &bytes);
  if (!status) status = text_publish(run->page, text, bytes);
  free(text);
  if (!status) return;
  log_warn("%s: what is there is not of the last %s", status_message(),
           run->has_page ? "sweep" : "run");
  status_clear();
}

void run_page_now(const struct run *run)
{
  if (run->comm.rank || !*run->page) return;
  run_page_write(run, "sagitta run", own_tell, run);
  if (noted.own.out) fclose(noted.own.out);
  free(noted.own_text);
  noted.own = (struct json){0};
  noted.own_text = NULL;
}

void run_page_end(const struct run *run)
{
  if (run->comm.rank || !*run->page || run->has_page || !companions_are_published()) return;
  run_page_write(run, "sagitta run", own_tell, run);
}

int run_page_print_own(const struct run *run, void (*tell)(const void *, struct json *),
                       const void *self)
{
  struct json j;
  if (run->comm.rank || !facts_wanted(run) || facts_are_printed()) return OK;
  TRY(facts_begin(run, &j));
  json_text(&j, "result", *run->result ? run->result : NULL);
  tell(self, &j);
  phases_tell(&j);
  return facts_end(&j);
}

int run_page_print(const struct run *run)
{
  return run_page_print_own(run, own_tell, run);
}
