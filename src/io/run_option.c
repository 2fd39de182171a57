/* SPDX-License-Identifier: BSD-3-Clause
 * The options in /run are stored as a deck; a text that is not a valid deck gives no value. */
#include "io/run_option.h"

#include <stdlib.h>
#include <string.h>

#include "base/options_config.h"
#include "base/status.h"

enum { MAX_OPTIONS = 1 << 16 };

struct wanted {
  const char *key, *value;
};

static int entry_note(void *self, const struct config_entry *e)
{
  struct wanted *w = self;
  if (strcmp(e->key, w->key) == 0) w->value = e->value;
  return OK;
}

int run_option_find(const struct h5_file *result, const char *key, const char **value)
{
  struct wanted w = {key, NULL};
  char *options = malloc(MAX_OPTIONS);
  CHECK(options, ERR_MEMORY, "cannot allocate %d bytes", MAX_OPTIONS);
  int status = h5_read_text(result, "/run", "options", options, MAX_OPTIONS);
  if (!status) status = config_parse(result->path, options, strlen(options), entry_note, &w);
  free(options);
  if (status != OK && status != ERR_MEMORY) status_clear();
  *value = w.value;
  return status == ERR_MEMORY ? status : OK;
}

int run_is_of_range(const struct h5_file *result, int *is)
{
  const char *range = NULL;
  TRY(run_option_find(result, "row-range", &range));
  *is = range && *range;
  return OK;
}
