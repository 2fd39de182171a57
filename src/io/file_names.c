/* SPDX-License-Identifier: BSD-3-Clause
 * scandir() either returns all names of the folder, or fails. */
#include "io/file_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/watchdog.h"

static int is_file_name(const struct dirent *entry)
{
  const char *name = entry->d_name, *end = strrchr(name, '.');
  return name[0] != '.' && end && strcmp(end, ".h5") == 0;
}

static int bytes_compare(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

int file_names_list(struct file_names *names, const char *folder)
{
  *names = (struct file_names){0};
  int step = watchdog_begin(ERR_IO, "reading folder", folder);
  int count = scandir(folder, &names->entries, is_file_name, bytes_compare);
  watchdog_end(step);
  CHECK(count >= 0, errno == ENOMEM ? ERR_MEMORY : ERR_IO, "cannot read folder '%s': %s", folder,
        strerror(errno));
  names->count = count;
  return OK;
}

void file_names_free(struct file_names *names)
{
  for (int i = 0; i < names->count; i++) free(names->entries[i]);
  free(names->entries);
  *names = (struct file_names){0};
}
