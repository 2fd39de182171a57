/* SPDX-License-Identifier: BSD-3-Clause
 * The tables say all of it. */
#include "cli/describe.h"

#include <stdio.h>
#include <string.h>

#include "base/options_write.h"
#include "cli/facts.h"

static void command_describe(const struct command *command, struct json *out)
{
  const struct option_set *set = command->options;
  json_object(out, NULL);
  json_text(out, "name", command->name);
  json_text(out, "summary", command->summary);
  json_text(out, "arguments", set->arguments);
  json_flag(out, "mpi", command->parallel);
  json_flag(out, "config_file", set->has_deck || set->takes_files);
  json_flag(out, "resumable", options_has(set, "resume"));
  json_array(out, "options");
  options_describe(set, out);
  json_end(out);
  json_end(out);
}

void describe_print(const struct command *const *commands, int count, const char *name, FILE *out)
{
  struct json j = {.out = out};
  facts_head(&j, "--describe");
  json_array(&j, "commands");
  for (int i = 0; i < count; i++)
    if (!name || strcmp(commands[i]->name, name) == 0) command_describe(commands[i], &j);
  json_end(&j);
  json_end(&j);
}
