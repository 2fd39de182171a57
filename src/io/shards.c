/* SPDX-License-Identifier: BSD-3-Clause
 * glob(3) finds the files of a pattern.  They are sorted here, because the order of glob() depends
 * on the locale. */
#include "io/shards.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options_config.h"
#include "base/proc.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "io/inputs.h"
#include "io/place.h"

enum { MAX_LIST = 64 << 20, MAX_SHARDS = 1 << 20 };

/* Keep a copy of a text until shards_close(). */
static int text_keep(struct shard_names *s, const char *text, char **kept)
{
  char **texts = realloc(s->texts, ((size_t)s->n_texts + 1) * sizeof *texts);
  if (texts) s->texts = texts;
  *kept = texts ? strdup(text) : NULL;
  CHECK(*kept, ERR_MEMORY, "cannot allocate %zu bytes", strlen(text));
  s->texts[s->n_texts++] = *kept;
  return OK;
}

static int name_add(struct shard_names *s, const char *name, const char *origin, int line)
{
  if (s->count == s->capacity) {
    CHECK(s->count < MAX_SHARDS, ERR_INPUT, "there are more than %d shards", MAX_SHARDS);
    s->capacity = 2 * s->capacity + 16;
    struct shard_name *list = realloc(s->list, (size_t)s->capacity * sizeof *list);
    CHECK(list, ERR_MEMORY, "cannot allocate %d names", s->capacity);
    s->list = list;
  }
  struct shard_name *added = &s->list[s->count];
  *added = (struct shard_name){strdup(name), origin, line};
  CHECK(added->name, ERR_MEMORY, "cannot allocate %zu bytes", strlen(name));
  s->count++;
  return OK;
}

static int has_signs(const char *name)
{
  return strpbrk(name, "*?[") != NULL;
}

static int is_file(const char *name)
{
  char *file;
  const char *object;
  if (input_split(name, &(struct input_standard){.object = "", .file = ""}, &file, &object)) {
    status_clear();
    return 0;
  }
  int there = input_is_there(file);
  free(file);
  return there;
}

static int bytes_order(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* *found <- the files that match.  If none does, gl_pathc is 0. */
static int pattern_match(const char *pattern, glob_t *found)
{
  int step = watchdog_begin(ERR_IO, "looking for", pattern);
  int failed = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, found), error = errno;
  watchdog_end(step);
  CHECK(failed != GLOB_NOSPACE, ERR_MEMORY, "cannot allocate what matches '%s'", pattern);
  CHECK(failed != GLOB_ABORTED || error == ENOENT, ERR_IO, "cannot look for '%s': %s", pattern,
        strerror(error));
  if (failed) found->gl_pathc = 0;
  if (found->gl_pathc > 0)
    qsort(found->gl_pathv, found->gl_pathc, sizeof *found->gl_pathv, bytes_order);
  return OK;
}

/* Add the files that match a pattern, each with the path after the pattern.  A file's name may have
 * colons itself, and so may the path, so first the whole text is tried as the pattern, then the
 * text before each colon, beginning with the last colon. */
static int pattern_add(struct shard_names *s, const char *pattern, const char *origin, int line)
{
  char part[MAX_NAME], name[2 * MAX_NAME];
  CHECK(strlen(pattern) < sizeof part, ERR_INPUT, "the name '%s' is too long: give a shorter one",
        pattern);
  strcpy(part, pattern);
  glob_t found = {0};
  TRY(pattern_match(part, &found));
  for (char *split; !found.gl_pathc && (split = strrchr(part, ':'));) {
    globfree(&found);
    *split = '\0';
    TRY(pattern_match(part, &found));
  }
  const char *object = strlen(part) < strlen(pattern) ? pattern + strlen(part) : "";
  int status = OK;
  for (size_t i = 0; i < found.gl_pathc && !status; i++) {
    snprintf(name, sizeof name, "%s%s", found.gl_pathv[i], object);
    status = name_add(s, name, origin, line);
  }
  int matches = found.gl_pathc > 0;
  globfree(&found);
  TRY(status);
  CHECK(matches, ERR_IO, "no file matches '%s'%s%s: correct the pattern, or make the files",
        pattern, line ? ", of " : "", line ? origin : "");
  return OK;
}

/* Add a name that is not a list: a file or a pattern. */
static int entry_add(struct shard_names *s, const char *name, const char *list, int line)
{
  char *kept;
  if (!has_signs(name) || is_file(name)) return name_add(s, name, list, line);
  TRY(text_keep(s, name, &kept));
  return pattern_add(s, name, list ? list : kept, line);
}

/* Remove a line's comment, then leading and trailing blanks. */
static char *line_clean(char *line)
{
  while (*line == ' ' || *line == '\t') line++;
  for (char *at = strchr(line, '#'); at; at = strchr(at + 1, '#'))
    if (at == line || at[-1] == ' ' || at[-1] == '\t') {
      *at = '\0';
      break;
    }
  size_t length = strlen(line);
  while (length && strchr(" \t\r", line[length - 1])) line[--length] = '\0';
  return line;
}

static int line_add(struct shard_names *s, const char *list, int number, char *line)
{
  char folder[4096], name[2 * sizeof folder];
  CHECK(config_is_text(line, strlen(line)), ERR_INPUT,
        "line %d of '%s' is not text: a list of shards has the name of a file in each line", number,
        list);
  line = line_clean(line);
  if (!*line) return OK;
  CHECK(*line != '@', ERR_INPUT, "line %d of '%s' names another list, '%s': a list names files",
        number, list, line + 1);
  CHECK(strlen(line) < MAX_NAME, ERR_INPUT, "line %d of '%s' is too long", number, list);
  path_folder(list, folder);
  int is_plain = *line == '/' || strcmp(folder, ".") == 0;
  snprintf(name, sizeof name, "%s%s%s", is_plain ? "" : folder, is_plain ? "" : "/", line);
  return entry_add(s, name, list, number);
}

static int text_add(struct shard_names *s, const char *list, char *text)
{
  int before = s->count, number = 1;
  if (strncmp(text, "\xef\xbb\xbf", 3) == 0) text += 3; /* a byte order mark */
  for (char *line; (line = strsep(&text, "\n")); number++) TRY(line_add(s, list, number, line));
  CHECK(s->count > before, ERR_INPUT,
        "the list '%s' names no files: write the name of a file in each line", list);
  return OK;
}

static int list_add(struct shard_names *s, const char *name)
{
  char *list;
  TRY(text_keep(s, name, &list));
  struct flat_file *files = realloc(s->files, ((size_t)s->n_files + 1) * sizeof *files);
  CHECK(files, ERR_MEMORY, "cannot allocate %d lists", s->n_files + 1);
  s->files = files;
  struct flat_file *f = &s->files[s->n_files++];
  TRY(flat_open(f, list));
  gidx bytes = f->input->facts.size;
  CHECK(bytes < MAX_LIST, ERR_INPUT, "the list '%s' has %lld bytes: is it data?  A list has names",
        list, (long long)bytes);
  char *text = calloc(1, (size_t)bytes + 1);
  CHECK(text, ERR_MEMORY, "cannot allocate %lld bytes", (long long)bytes);
  int status = flat_bytes(f, 0, (size_t)bytes, text);
  if (!status && strlen(text) < (size_t)bytes)
    status =
        status_fail(ERR_INPUT, __FILE__, __LINE__,
                    "'%s' is not text: a list of shards has the name of a file in each line", list);
  if (!status) status = text_add(s, list, text);
  free(text);
  return status;
}

int shards_open(struct shard_names *s, const char *text)
{
  *s = (struct shard_names){0};
  char *copy = strdup(text), *rest = copy;
  CHECK(copy, ERR_MEMORY, "cannot allocate %zu bytes", strlen(text));
  int status = OK;
  for (char *name; !status && (name = strsep(&rest, "\n"));)
    status = *name == '@' ? list_add(s, name + 1) : entry_add(s, name, NULL, 0);
  free(copy);
  if (s->count > 1) proc_files_allow(); /* since many shards may be open at once */
  return status;
}

void shards_close(struct shard_names *s)
{
  for (int i = 0; i < s->count; i++) free(s->list[i].name);
  for (int i = 0; i < s->n_files; i++) flat_close(&s->files[i]);
  for (int i = 0; i < s->n_texts; i++) free(s->texts[i]);
  free(s->list);
  free(s->files);
  free(s->texts);
  *s = (struct shard_names){0};
}
