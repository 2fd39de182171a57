/* SPDX-License-Identifier: BSD-3-Clause
 * All lines are checked before anything is computed.  Rows are opened.  Each result is compared
 * with every input, including the inputs of other lines. */
#include "encoding/backlog_check.h"

#include <stdio.h>

#include "base/status.h"
#include "encoding/backlog.h"
#include "io/inputs.h"

int backlog_output_check(const struct backlog_list *list, const struct backlog_entry *entry)
{
  const char *input = backlog_inputs_find(&list->inputs, entry->place);
  CHECK(!input, ERR_CREATE,
        "line %d of '%s': '%s' would replace an input of this server, '%s': give another output",
        entry->line, list->name, entry->file, input);
  return OK;
}

/* Can the result be written, as far as this is known before its file is begun? */
static int line_output_check(const struct backlog *b, const struct backlog_entry *entry)
{
  TRY(backlog_output_check(&b->list, entry));
  CHECK(!input_is_there(entry->place) || b->task.resume || b->task.force, ERR_CREATE,
        "line %d of '%s': '%s' already exists: --resume keeps or continues it, and --force "
        "makes it again",
        entry->line, b->list.name, entry->file);
  return OK;
}

/* Can the rows be opened, with as many columns as the dictionary? */
static int line_rows_check(struct backlog *b, const struct backlog_entry *entry)
{
  struct rows_input rows = {0};
  char reason[1024];
  int status = served_rows_open(&rows, &b->task, entry->rows);
  if (!status) status = backlog_inputs_add(&b->list.inputs, rows.files, rows.n_files);
  snprintf(reason, sizeof reason, "%s", status ? status_message() : "");
  rows_input_close(&rows);
  status_clear();
  CHECK(!status, status, "line %d of '%s': %s", entry->line, b->list.name, reason);
  return OK;
}

int backlog_check(struct backlog *b)
{
  const struct backlog_list *list = &b->list;
  const char *const names[] = {b->task.dictionary->file, list->name};
  b->task.list = list;
  TRY(backlog_inputs_add(&b->list.inputs, names, LENGTH(names)));
  for (gidx i = 0; i < list->count; i++) TRY(line_rows_check(b, &list->all[i]));
  for (gidx i = 0; i < list->count; i++) TRY(line_output_check(b, &list->all[i]));
  return OK;
}
