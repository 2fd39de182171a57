/* SPDX-License-Identifier: BSD-3-Clause
 * The object is put together in memory, and is then one write. */
#include "cli/facts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "cli/revision.h"
#include "config.h"

enum { FACTS_VERSION = 1 };

static char *text; /* of the object */
static size_t bytes;
static int are_printed;

int facts_wanted(const struct run *run)
{
  const struct general_options *general = run->options;
  return general->json;
}

void facts_head(struct json *j, const char *command)
{
  json_object(j, NULL);
  json_text(j, "format", "sagitta facts");
  json_long(j, "format_version", FACTS_VERSION);
  json_text(j, "command", command);
  json_text(j, "version", PACKAGE_VERSION);
  json_text(j, "revision", REVISION);
}

int facts_begin(const struct run *run, struct json *j)
{
  *j = (struct json){.out = open_memstream(&text, &bytes)};
  CHECK(j->out, ERR_MEMORY, "cannot allocate the object of '--json'");
  facts_head(j, run->command->name);
  return OK;
}

int facts_end(struct json *j)
{
  json_end(j);
  int failed = ferror(j->out) != 0;
  failed = fclose(j->out) || failed;
  CHECK(!failed, ERR_MEMORY, "cannot allocate the object of '--json'");
  fwrite(text, 1, bytes, stdout);
  free(text);
  are_printed = 1;
  return OK;
}

int facts_are_printed(void)
{
  return are_printed;
}
