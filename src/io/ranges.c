/* SPDX-License-Identifier: BSD-3-Clause
 * The options that all jobs of a growing file share are text at the beginning of the file.  No
 * chunk overwrites it, since all chunks come later in the file.  HDF5's own bytes are written there
 * only when the result is published. */
#include "io/ranges.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/num.h"
#include "base/retry.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "io/inputs.h"
#include "io/journal.h"
#include "io/place.h"
#include "io/temporary.h"

static const char magic[] = "sagitta ranges\n";
enum { DIGITS = 16, MOST = 1 << 16 };

static int publishes; /* 1: this run publishes a growing file */

/* Files that this run removes if it ends without a record; "": none. */
static char made[4096], journal_claimed[4096];
static int held = -1; /* the open journal, with its lock */

int ranges_name(const char *path, const char *text, char *growing)
{
  unsigned char hash[SHA256_BYTES];
  char digits[SHA256_HEX];
  TRY(sha256(text, strlen(text), hash));
  sha256_hex(hash, digits);
  int length = snprintf(growing, 4096, "%s.%.*s" GROWING_END, path, DIGITS, digits);
  CHECK(length < 4096 - 64, ERR_CREATE, "the name '%s' is too long: give a shorter one", path);
  return OK;
}

void range_journal(const char *growing, gidx first, gidx end, char *journal)
{
  snprintf(journal, 4096, "%.*s.%lld-%lld" JOURNAL_END,
           (int)(strlen(growing) - strlen(GROWING_END)), growing, (long long)first, (long long)end);
}

/* text[MOST] <- the first bytes of a file.  Returns 0, or the system's error. */
static int beginning_read(const char *name, char *text)
{
  int step = watchdog_begin(ERR_IO, "reading", name);
  int file = retry_open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  ssize_t got = file < 0 ? -1 : retry_pread(file, text, MOST - 1, 0);
  int error = got < 0 ? errno : 0;
  if (file >= 0) close(file);
  watchdog_end(step);
  text[got < 0 ? 0 : got] = '\0';
  return error;
}

int ranges_text(const char *growing, char **text, gidx *id)
{
  char *all = malloc(MOST);
  CHECK(all, ERR_MEMORY, "cannot allocate %d bytes", MOST);
  int error = beginning_read(growing, all), has = !strncmp(all, magic, strlen(magic));
  char *at = all + strlen(magic), *behind = at;
  unsigned long long value = has ? strtoull(at, &behind, 16) : 0;
  has = has && behind == at + DIGITS && *behind == '\n';
  if (id) *id = (gidx)value;
  *text = has ? strdup(behind + 1) : NULL;
  free(all);
  CHECK(!error, ERR_IO, "cannot read '%s': %s", growing, strerror(error));
  CHECK(*text || !has, ERR_MEMORY, "cannot allocate %d bytes", MOST);
  return OK;
}

/* Write the text into the temporary file, and link it to the growing file's name if no file has
 * this name.  *error <- the system's error, or 0. */
static int beginning_link(const struct temporary *t, FILE *file, const char *text, int *error)
{
  char head[64];
  uint64_t id;
  int has_id = getrandom(&id, sizeof id, 0) == sizeof id;
  int length = snprintf(head, sizeof head, "%s%0*llx\n", magic, DIGITS, (unsigned long long)id);
  int status = temporary_write(file, t->name, head, (size_t)length);
  if (!status) status = temporary_write(file, t->name, text, strlen(text) + 1);
  int closed = temporary_close(t, file);
  TRY(status);
  TRY(closed);
  CHECK(has_id, ERR_CREATE, "no random numbers for '%s'", t->path);
  int step = watchdog_begin(ERR_IO, "linking", t->path);
  *error = link(t->name, t->path) ? errno : 0;
  watchdog_end(step);
  return OK;
}

int ranges_create(const char *growing, const char *text)
{
  struct temporary t;
  FILE *file;
  int error = 0;
  CHECK(strlen(text) < MOST - 64, ERR_INTERNAL, "the text of '%s' is too long", growing);
  if (input_is_there(growing)) return OK;
  TRY(temporary_create(&t, growing, NULL, &file));
  int status = beginning_link(&t, file, text, &error);
  temporary_drop(&t);
  if (!status && !error) strcpy(made, growing);
  TRY(status);
  CHECK(!error || error == EEXIST, ERR_CREATE,
        "cannot create '%s': %s; where files cannot be linked leave '--join' out", growing,
        strerror(error));
  return OK;
}

/* Parse "FIRST-END.journal".  Returns 0 if the text has another form. */
static int rows_read(const char *text, gidx *first, gidx *end)
{
  char *behind;
  if (strspn(text, "0123456789") - 1 > 17) return 0;
  *first = strtoll(text, &behind, 10);
  if (*behind != '-' || strspn(behind + 1, "0123456789") - 1 > 17) return 0;
  *end = strtoll(behind + 1, &behind, 10);
  return strcmp(behind, JOURNAL_END) == 0 && *first < *end;
}

/* The names of journals and growing files in a folder. */
struct names {
  struct dirent **all; /* [count] */
  int count;
};

static int is_wanted(const struct dirent *entry)
{
  return journal_is(entry->d_name) || journal_is_growing(entry->d_name);
}

/* List the names.  A missing folder has none.  Call names_free() also after a failure. */
static int names_list(struct names *names, const char *path)
{
  char folder[4096];
  *names = (struct names){0};
  path_folder(path, folder);
  int step = watchdog_begin(ERR_IO, "reading folder", folder);
  int count = scandir(folder, &names->all, is_wanted, NULL), error = count < 0 ? errno : 0;
  watchdog_end(step);
  names->count = (int)imax(count, 0);
  CHECK(!error || error == ENOENT, error == ENOMEM ? ERR_MEMORY : ERR_IO,
        "cannot read folder '%s': %s", folder, strerror(error));
  return OK;
}

static void names_free(struct names *names)
{
  for (int i = 0; i < names->count; i++) free(names->all[i]);
  free(names->all);
}

/* The rest of a name that begins with "NAME."; NULL: it begins otherwise. */
static const char *tail_of(const struct dirent *entry, const char *name, size_t length)
{
  int is = strncmp(entry->d_name, name, length) == 0 && entry->d_name[length] == '.';
  return is ? entry->d_name + length + 1 : NULL;
}

/* Note the growing file of several jobs, when it or one of its journals is found. */
static int growing_note(struct range_list *list, const char *growing)
{
  CHECK(!*list->growing || !strcmp(list->growing, growing), ERR_CREATE,
        "'%s' and '%s' are of jobs that have other options or inputs: remove one, and its journals",
        list->growing, growing);
  strcpy(list->growing, growing);
  return OK;
}

/* Add the journal of a range to the list, if this name is one. `tail` is the name without the
 * result's name. */
static int journal_take(struct range_list *list, const char *growing, const char *tail)
{
  gidx first, end;
  if (tail[DIGITS] != '.' || !rows_read(tail + DIGITS + 1, &first, &end)) return OK;
  TRY(growing_note(list, growing));
  struct range *r = &list->all[list->count++];
  *r = (struct range){.first = first, .end = end};
  range_journal(growing, first, end, r->journal);
  return OK;
}

/* If this name is the growing file of a single job, note it.  Also note a growing file of several
 * jobs, unless another one was noted already.  Every job at work has a journal, and the growing
 * files that have journals were noted first.  So no job is at work on a file that is not noted. */
static int growing_take(struct range_list *list, const char *growing, const char *tail)
{
  if (strcmp(tail + DIGITS, GROWING_END) != 0) return OK;
  if (!ranges_are(growing)) return strcpy(list->single, growing), OK;
  if (*list->growing && strcmp(list->growing, growing) != 0) return OK;
  strcpy(list->growing, growing);
  list->has_growing = 1;
  return OK;
}

static int entry_take(struct range_list *list, const char *path, const char *tail, int is_first)
{
  char growing[4096];
  if (strspn(tail, "0123456789abcdef") != DIGITS) return OK;
  snprintf(growing, sizeof growing, "%s.%.*s" GROWING_END, path, DIGITS, tail);
  return is_first ? journal_take(list, growing, tail) : growing_take(list, growing, tail);
}

static int row_order(const void *a, const void *b)
{
  const struct range *x = a, *y = b;
  gidx one = x->first != y->first ? x->first : x->end,
       two = x->first != y->first ? y->first : y->end;
  return one < two ? -1 : one > two;
}

static int names_take(struct range_list *list, const char *path, const struct names *names)
{
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t length = strlen(name);
  if (!names->count) return OK;
  list->all = malloc((size_t)names->count * sizeof *list->all);
  CHECK(list->all, ERR_MEMORY, "cannot allocate the names of %d journals", names->count);
  for (int i = 0; i < 2 * names->count; i++) {
    const char *tail = tail_of(names->all[i % names->count], name, length);
    if (tail) TRY(entry_take(list, path, tail, i < names->count));
  }
  qsort(list->all, (size_t)list->count, sizeof *list->all, row_order);
  return OK;
}

int ranges_find(struct range_list *list, const char *path)
{
  struct names names;
  *list = (struct range_list){0};
  int status = names_list(&names, path);
  if (!status) status = names_take(list, path, &names);
  names_free(&names);
  return status;
}

void ranges_free(struct range_list *list)
{
  free(list->all);
  *list = (struct range_list){0};
}

/* Does the folder have a journal of this growing file?  This shows that several jobs write the
 * file, even if HDF5 has overwritten its text. */
static int has_journals(const char *growing)
{
  struct names names;
  gidx first, end;
  int has = 0, status = names_list(&names, growing);
  const char *slash = strrchr(growing, '/'), *name = slash ? slash + 1 : growing;
  for (int i = 0; i < names.count && !status && !has; i++) {
    const char *tail = tail_of(names.all[i], name, strlen(name) - strlen(GROWING_END));
    has = tail && rows_read(tail, &first, &end);
  }
  names_free(&names);
  if (status) status_clear();
  return has;
}

int ranges_are(const char *growing)
{
  char *text = NULL;
  if (ranges_text(growing, &text, NULL)) status_clear();
  int are = text || has_journals(growing);
  free(text);
  return are;
}

int ranges_hold(const char *journal, int file)
{
  if (held >= 0) close(held);
  held = dup(file);
  CHECK(held >= 0, ERR_IO, "cannot hold '%s': %s", journal, strerror(errno));
  strcpy(journal_claimed, journal);
  return OK;
}

void ranges_keep(void)
{
  if (held >= 0) close(held);
  held = -1;
  *made = '\0';
}

void ranges_give_up(int lock)
{
  struct journal j = {.file = held};
  strcpy(j.name, journal_claimed);
  if (held >= 0 && journal_is_current(&j)) output_remove(journal_claimed);
  /* If another job has begun to use the file, it holds the lock too, and the file stays. */
  if (*made && lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && !has_journals(made))
    output_remove(made);
  ranges_keep();
}

void ranges_publish(void)
{
  publishes = 1;
}

int ranges_check_free(const char *path)
{
  struct range_list list;
  if (publishes) return OK;
  int status = ranges_find(&list, path), are = *list.growing != '\0';
  char growing[sizeof list.growing];
  strcpy(growing, list.growing);
  ranges_free(&list);
  TRY(status);
  CHECK(!are, ERR_CREATE,
        "'%s' is of jobs that write ranges of rows (--join): `sagitta merge` of the folder "
        "publishes them; to give them up, remove it and its journals",
        growing);
  return OK;
}
