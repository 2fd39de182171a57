/* SPDX-License-Identifier: BSD-3-Clause
 * The object is composed in memory, and written at once. */
#include "job/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/options_write.h"
#include "base/status.h"
#include "base/text.h"
#include "job/summary.h"

enum { FACTS_VERSION = 1 };

static const char object[] = "the object of '--json'";
static char *text; /* of the object */
static size_t bytes;
static int are_printed;

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
  TRY(text_open(&j->out, &text, &bytes, object));
  facts_head(j, run->program, run->command->name);
  return OK;
}

int facts_end(struct json *j)
{
  json_end(j);
  TRY(text_close(j->out, object));
  fwrite(text, 1, bytes, stdout);
  free(text);
  are_printed = 1;
  return OK;
}

int facts_are_printed(void)
{
  return are_printed;
}
