/* SPDX-License-Identifier: BSD-3-Clause
 * Files are compared by device and inode number, which are the same for all links to a file. */
#include "encoding/backlog_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/inputs.h"

static int inputs_grow(struct backlog_inputs *inputs)
{
  gidx capacity = 2 * inputs->count + 16;
  if (inputs->count < inputs->capacity) return OK;
  void *all = realloc(inputs->all, (size_t)capacity * sizeof *inputs->all);
  CHECK(all, ERR_MEMORY, "cannot allocate the names of %lld inputs", (long long)capacity);
  inputs->all = all;
  inputs->capacity = capacity;
  return OK;
}

int backlog_inputs_add(struct backlog_inputs *inputs, const char *const *names, int count)
{
  for (int i = 0; i < count; i++) {
    struct backlog_input input = {0};
    TRY(file_facts_of(names[i], &input.facts));
    TRY(inputs_grow(inputs));
    input.name = strdup(names[i]);
    CHECK(input.name, ERR_MEMORY, "cannot allocate the name '%s'", names[i]);
    inputs->all[inputs->count++] = input;
  }
  return OK;
}

const char *backlog_inputs_find(const struct backlog_inputs *inputs, const char *path)
{
  struct file_facts facts;
  if (!input_is_there(path)) return NULL;
  if (file_facts_of(path, &facts)) { /* every input could be opened, so this file is none of them */
    status_clear();
    return NULL;
  }
  for (gidx i = 0; i < inputs->count; i++) {
    const struct file_facts *one = &inputs->all[i].facts;
    if (one->device == facts.device && one->inode == facts.inode) return inputs->all[i].name;
  }
  return NULL;
}

void backlog_inputs_free(struct backlog_inputs *inputs)
{
  for (gidx i = 0; i < inputs->count; i++) free(inputs->all[i].name);
  free(inputs->all);
  *inputs = (struct backlog_inputs){0};
}
