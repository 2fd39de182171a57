/* SPDX-License-Identifier: BSD-3-Clause
 * Two names of one output are found by comparing paths after links in their folders are
 * resolved. */
#include "encoding/backlog_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "encoding/backlog_path.h"

/* Split a line into words, three at most; returns how many there are.  A # begins a comment. */
static int words_of(char *line, char *words[3])
{
  static const char blanks[] = " \t\r\n";
  char *rest = NULL;
  int n = 0;
  line[strcspn(line, "#")] = '\0';
  for (char *w = strtok_r(line, blanks, &rest); w && n < 3; w = strtok_r(NULL, blanks, &rest))
    words[n++] = w;
  return n;
}

static int list_grow(struct backlog_list *list)
{
  gidx capacity = 2 * list->capacity + 16;
  if (list->count < list->capacity) return OK;
  void *all = realloc(list->all, (size_t)capacity * sizeof *list->all);
  CHECK(all, ERR_MEMORY, "cannot allocate %lld lines of '%s'", (long long)capacity, list->name);
  list->all = all;
  list->capacity = capacity;
  return OK;
}

static void entry_free(struct backlog_entry *e)
{
  free(e->rows);
  free(e->output);
  free(e->file);
  free(e->place);
}

static int path_check(const struct backlog_list *list, const char *file, const char *place,
                      int line)
{
  for (gidx i = 0; i < list->count; i++)
    CHECK(strcmp(list->all[i].place, place) != 0, ERR_INPUT,
          "lines %d and %d of '%s' have one output, '%s': give each its own", list->all[i].line,
          line, list->name, file);
  return OK;
}

static int entry_add(struct backlog_list *list, char *const *words, int line)
{
  char file[BACKLOG_NAME], place[BACKLOG_NAME];
  TRY(list_grow(list));
  TRY(backlog_path_name(words[1], file));
  TRY(backlog_path(file, place));
  TRY(path_check(list, file, place, line));
  struct backlog_entry e = {strdup(words[0]), strdup(words[1]), strdup(file), strdup(place), line};
  int is_whole = e.rows && e.output && e.file && e.place;
  if (!is_whole) entry_free(&e);
  CHECK(is_whole, ERR_MEMORY, "cannot allocate a line of '%s'", list->name);
  list->all[list->count++] = e;
  return OK;
}

static int lines_read(struct backlog_list *list, FILE *file, char **line)
{
  size_t capacity = 0;
  for (int number = 1; getline(line, &capacity, file) >= 0; number++) {
    char *words[3];
    int n = words_of(*line, words);
    if (!n) continue;
    CHECK(n == 2, ERR_INPUT,
          "line %d of '%s' is no pair: give a file of rows, a blank and the place of its result",
          number, list->name);
    TRY(entry_add(list, words, number));
  }
  CHECK(!ferror(file), ERR_IO, "cannot read '%s': %s", list->name, strerror(errno));
  CHECK(list->count, ERR_INPUT, "'%s' names no files: leave '--backlog' out", list->name);
  return OK;
}

int backlog_list_read(struct backlog_list *list, const char *name)
{
  char *line = NULL;
  *list = (struct backlog_list){.name = name};
  FILE *file = fopen(name, "r");
  CHECK(file, ERR_IO, "cannot open '%s': %s", name, strerror(errno));
  int status = lines_read(list, file, &line);
  free(line);
  fclose(file);
  return status;
}

void backlog_list_free(struct backlog_list *list)
{
  for (gidx i = 0; i < list->count; i++) entry_free(&list->all[i]);
  backlog_inputs_free(&list->inputs);
  free(list->all);
  *list = (struct backlog_list){0};
}
