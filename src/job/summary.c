/* SPDX-License-Identifier: BSD-3-Clause
 * Texts are composed in memory, and written at once.  run.json goes to a temporary file first. */
#include "job/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options_write.h"
#include "base/status.h"
#include "base/text.h"
#include "io/identity.h"
#include "io/metrics.h"
#include "io/sidecars.h"
#include "io/temporary.h"
#include "io/writer.h"

enum { FACTS_VERSION = 1, SUMMARY_VERSION = 1, MAX_PHASES = 48 };

static const char object_name[] = "the object of '--json'";
static struct {
  char *text;
  size_t bytes;
  int is_printed;
} object;

static struct {
  struct phase_line phases[MAX_PHASES];
  int n_phases, has_metrics, has_codes, has_ended;
  struct metrics metrics;
  struct identity inputs;
  char device[280];
  const char *format; /* of summary_format_set(); NULL: none */
  struct json own;    /* the command's entries, to be copied into an object */
  char *own_text;
  size_t own_bytes;
} noted;

static void words_join(const struct run *run, char *out, size_t capacity)
{
  size_t used = (size_t)snprintf(out, capacity, "%s", run->program->name);
  for (int i = 0; i < run->argc && used < capacity; i++)
    used += (size_t)snprintf(out + used, capacity - used, " %s", run->argv[i]);
}

static void options_join(const struct run *run, char *out, size_t capacity)
{
  FILE *memory = fmemopen(out, capacity, "w");
  out[0] = '\0';
  if (!memory) return;
  options_write(run->command->options, run->options, memory);
  fclose(memory);
  out[capacity - 1] = '\0';
}

int run_facts(const struct run *run, const char *device, int threads, struct run_fact *facts)
{
  static char words[8192], options[8192], host[256], ended[32];
  if (device) summary_device_set(device);
  words_join(run, words, sizeof words);
  options_join(run, options, sizeof options);
  gethostname(host, sizeof host - 1);
  time_t now = time(NULL);
  strftime(ended, sizeof ended, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  const struct run_fact all[] = {
      {"version", run->program->version, 0},
      {"revision", run->program->revision, 0},
      {"numerics", NULL, NUMERICS},
      {"command", words, 0},
      {"options", options, 0},
      {"host", host, 0},
      {"ranks", NULL, run->comm.size},
      {"threads", NULL, threads},
      {"device", device, 0},
      {"started", run->started, 0},
      {"ended", ended, 0},
      {"identity", run->identity.text, 0},
  };
  int count = LENGTH(all) - (run->identity.text == NULL);
  memcpy(facts, all, (size_t)count * sizeof *all);
  return count;
}

void facts_head(struct json *j, const struct program *program, const char *command)
{
  json_object(j, NULL);
  json_text(j, "format", "sagitta facts");
  json_long(j, "format_version", FACTS_VERSION);
  json_text(j, "command", command);
  json_text(j, "version", program->version);
  json_text(j, "revision", program->revision);
}

int facts_begin(const struct run *run, struct json *j)
{
  *j = (struct json){0};
  TRY(text_open(&j->out, &object.text, &object.bytes, object_name));
  facts_head(j, run->program, run->command->name);
  return OK;
}

int facts_end(struct json *j)
{
  json_end(j);
  TRY(text_close(j->out, object_name));
  fwrite(object.text, 1, object.bytes, stdout);
  free(object.text);
  object.is_printed = 1;
  return OK;
}

void summary_phase_add(const struct phase_line *phase)
{
  if (noted.n_phases < MAX_PHASES) noted.phases[noted.n_phases++] = *phase;
}

void summary_metrics_set(const struct metrics *metrics, int has_codes)
{
  noted.metrics = *metrics;
  noted.has_codes = has_codes;
  noted.has_metrics = 1;
}

void summary_device_set(const char *device)
{
  snprintf(noted.device, sizeof noted.device, "%s", device);
}

void summary_inputs_set(const struct identity *inputs)
{
  noted.inputs = *inputs;
}

void summary_format_set(const char *format)
{
  noted.format = format;
}

int summary_entries(struct json **j)
{
  *j = &noted.own;
  if (noted.own.out) return OK;
  noted.own = (struct json){.depth = 1, .count = 1};
  return text_open(&noted.own.out, &noted.own_text, &noted.own_bytes, "the entries of run.json");
}

/* Write what /run of a result also has; then libraries, batch job, ranks and cores. */
static void run_json(const struct run *run, struct json *j)
{
  static const char *const names[] = {"version", "revision", "command", "host", "started"};
  struct run_fact facts[MAX_FACTS];
  int n = run_facts(run, NULL, 0, facts);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < LENGTH(names); k++)
      if (strcmp(facts[i].name, names[k]) == 0) json_text(j, names[k], facts[i].text);
  json_object(j, "options");
  options_json(run->command->options, run->options, j);
  json_end(j);
  run->program->libraries(j);
  json_text(j, "job", run->program->job());
  json_long(j, "ranks", run->comm.size);
  cores_json(run->cores, run->threads, run->comm.size, j);
}

/* Write the command's own entries.  Without a format of its own, write what was noted, too. */
static void entries_json(const struct run *run, struct json *j)
{
  if (noted.own.out && !fflush(noted.own.out)) fputs(noted.own_text, j->out);
  if (noted.format) return;
  json_text(j, "device", *noted.device ? noted.device : NULL);
  json_object(j, "inputs");
  identity_json(&noted.inputs, j);
  json_end(j);
  if (noted.has_metrics) metrics_json(&noted.metrics, noted.has_codes, j);
  json_real(j, "seconds", log_seconds());
  json_flag(j, "stopped", run->stopped);
}

/* *text <- all of run.json; the caller frees it. */
static int text_make(const struct run *run, char **text, size_t *bytes)
{
  struct json j = {0};
  TRY(text_open(&j.out, text, bytes, "run.json"));
  json_object(&j, NULL);
  json_text(&j, "format", noted.format ? noted.format : "sagitta run");
  json_long(&j, "format_version", SUMMARY_VERSION);
  run_json(run, &j);
  entries_json(run, &j);
  phase_lines_json(noted.phases, noted.n_phases, &j);
  json_end(&j);
  return text_close(j.out, "run.json");
}

static void file_write(const struct run *run)
{
  char *text = NULL;
  size_t bytes = 0;
  int status = text_make(run, &text, &bytes);
  if (!status) status = temporary_text_publish(run->summary, text, bytes);
  free(text);
  if (!status) return;
  log_warn("%s: the file there is not of the last %s", status_message(),
           noted.format ? "sweep" : "run");
  status_clear();
}

void summary_write(const struct run *run)
{
  if (run->comm.rank || !*run->summary) return;
  file_write(run);
  if (noted.own.out) fclose(noted.own.out);
  free(noted.own_text);
  noted.own = (struct json){0};
  noted.own_text = NULL;
}

static int entries_print(const struct run *run)
{
  struct json j;
  if (!run->wants_json || object.is_printed) return OK;
  TRY(facts_begin(run, &j));
  json_text(&j, "result", *run->result ? run->result : NULL);
  entries_json(run, &j);
  phase_lines_json(noted.phases, noted.n_phases, &j);
  return facts_end(&j);
}

int summary_end(const struct run *run)
{
  int has_result = noted.format || sidecars_are_published();
  if (run->comm.rank || noted.has_ended) return OK;
  noted.has_ended = 1;
  if (*run->summary && has_result) file_write(run);
  return entries_print(run);
}
