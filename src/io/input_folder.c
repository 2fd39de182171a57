/* SPDX-License-Identifier: BSD-3-Clause
 * Find the file in the folder, or list what the folder has instead. */
#include "io/input_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "base/text.h"
#include "base/watchdog.h"
#include "io/inputs.h"

enum { NAMES_SHOWN = 8 }; /* names that a message lists */

int input_in_folder(const char *name, const char *file, char *path)
{
  struct stat facts;
  size_t length = strlen(name);
  int step = watchdog_begin(ERR_IO, "looking at", name);
  int is_folder = stat(name, &facts) == 0 && S_ISDIR(facts.st_mode);
  watchdog_end(step);
  CHECK(length + strlen(file) + 2 < MAX_NAME, ERR_INPUT,
        "the name '%s' is too long: give a shorter one", name);
  while (is_folder && length > 0 && name[length - 1] == '/') length--;
  snprintf(path, MAX_NAME, "%.*s%s%s", (int)length, name, is_folder ? "/" : "",
           is_folder ? file : "");
  return OK;
}

static const char *const data_ends[] = {".safetensors", ".npy", ".h5"};

/* How many files of a folder have each of the endings in data_ends[]. */
struct folder_count {
  int files[LENGTH(data_ends)];
};

static void name_count(struct folder_count *c, const char *name)
{
  for (int i = 0; i < LENGTH(data_ends); i++) c->files[i] += text_ends_in(name, data_ends[i]);
}

/* list <- "used.in, supports.h5, ...": the first names of a folder.  *found <- the counts of all
 * its names. */
static void folder_list(const char *folder, char *list, size_t capacity, struct folder_count *found)
{
  struct dirent **names = NULL;
  size_t used = 0;
  int step = watchdog_begin(ERR_IO, "looking at", folder);
  int shown = 0, count = scandir(folder, &names, NULL, alphasort);
  watchdog_end(step);
  list[0] = '\0';
  for (int i = 0; i < count; i++) {
    const char *name = names[i]->d_name;
    if (*name != '.' && shown < NAMES_SHOWN && used < capacity)
      used += (size_t)snprintf(list + used, capacity - used, "%s%s", shown ? ", " : "", name);
    shown += *name != '.';
    if (*name != '.') name_count(found, name);
    free(names[i]);
  }
  if (shown > NAMES_SHOWN && used < capacity) snprintf(list + used, capacity - used, ", ...");
  free(names);
}

/* mend <- the text that names the data files with the most frequent ending, if rows are wanted and
 * there are several such files; otherwise "". */
static void folder_advice(const char *folder, const char *file, const struct folder_count *found,
                          char *mend, size_t capacity)
{
  int most = 0, takes_several = strcmp(file, "rows.h5") == 0;
  size_t length = strlen(folder);
  for (int i = 1; i < LENGTH(data_ends); i++)
    if (found->files[i] > found->files[most]) most = i;
  while (length > 1 && folder[length - 1] == '/') length--;
  mend[0] = '\0';
  if (takes_several && found->files[most] > 1)
    snprintf(mend, capacity, "; the rows of all %d are '%.*s/*%s', in quotes", found->files[most],
             (int)length, folder, data_ends[most]);
}

int input_of_folder(const char *name, const char *file, char *path)
{
  char list[1024], mend[1024];
  struct folder_count found = {0};
  TRY(input_in_folder(name, file, path));
  if (!*file || strcmp(name, path) == 0 || input_is_there(path)) return OK;
  folder_list(name, list, sizeof list, &found);
  folder_advice(name, file, &found, mend, sizeof mend);
  FAIL(ERR_IO, "cannot open '%s': the folder has %s%s; name the file, or the folder that has it%s",
       path, *list ? list : "nothing in it", *list ? " alone" : "", mend);
}
