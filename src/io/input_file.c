/* SPDX-License-Identifier: BSD-3-Clause
 * Open files are in a list, in the order of opening.  So ranks that open the same files in the same
 * order have equal lists. */
#include "io/input_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fingerprint.h"
#include "base/num.h"
#include "base/retry.h"
#include "base/status.h"
#include "base/watchdog.h"

static struct input_file *all;                          /* owned */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* locks the list */

int input_file_begin(struct input_file **input, const char *path, int descriptor,
                     const struct file_facts *facts)
{
  TRY(file_facts_check(descriptor, path, facts));
  struct input_file *f = malloc(sizeof *f), **end = &all;
  CHECK(f, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *f);
  *f = (struct input_file){.path = path, .descriptor = descriptor, .facts = *facts, .unseen = 1};
  pthread_mutex_lock(&one);
  while (*end) end = &(*end)->next;
  *input = *end = f;
  pthread_mutex_unlock(&one);
  return OK;
}

static int look(struct input_file *f)
{
  if (f->unseen) TRY(file_facts_check(f->descriptor, f->path, &f->facts));
  f->unseen = 0;
  return OK;
}

int input_file_end(struct input_file **input)
{
  struct input_file *f = *input, **at = &all;
  if (!f) return OK;
  *input = NULL;
  int status = look(f);
  pthread_mutex_lock(&one);
  while (*at != f) at = &(*at)->next;
  *at = f->next;
  pthread_mutex_unlock(&one);
  free(f);
  return status;
}

void input_file_array(struct input_file *f, const char *object, int type, int rank,
                      const gidx *shape)
{
  if (!f) return;
  gidx facts[5] = {(gidx)hash64(object, strlen(object)), type, rank};
  uint64_t sizes = hash64(shape, (size_t)imin(rank, 3) * sizeof *shape);
  facts[3] = (gidx)sizes;
  facts[4] = (gidx)f->shapes;
  f->shapes = hash64(facts, sizeof facts);
}

void input_file_read(struct input_file *f)
{
  if (f) f->unseen = 1;
}

int input_file_failed(struct input_file *f, int status)
{
  char reason[2048];
  if (!f || status != ERR_INPUT) return status;
  status_take(reason, sizeof reason);
  TRY(file_facts_check(f->descriptor, f->path, &f->facts));
  return status_set(status, reason);
}

int input_files_failed(int status)
{
  int found = status;
  pthread_mutex_lock(&one);
  for (struct input_file *f = all; f && found == status; f = f->next)
    if (f->unseen) found = input_file_failed(f, status);
  pthread_mutex_unlock(&one);
  return found;
}

int input_files_recheck(void)
{
  int status = OK;
  pthread_mutex_lock(&one);
  for (struct input_file *f = all; f && !status; f = f->next) status = look(f);
  pthread_mutex_unlock(&one);
  return status;
}

static int settled_check(const struct input_file *f)
{
  CHECK(f->compared && !f->unseen, ERR_INTERNAL, "'%s' was not %s before publishing", f->path,
        f->compared ? "looked at" : "compared");
  return OK;
}

int input_files_settled(void)
{
  int status = OK;
  pthread_mutex_lock(&one);
  for (struct input_file *f = all; f && !status; f = f->next) status = settled_check(f);
  pthread_mutex_unlock(&one);
  return status;
}

void input_files_compared(void)
{
  pthread_mutex_lock(&one);
  for (struct input_file *f = all; f; f = f->next) f->compared = 1;
  pthread_mutex_unlock(&one);
}

void input_file_compared(struct input_file *f)
{
  f->compared = 1;
}

/* *hash <- the hash of INPUT_END_BYTES bytes from `at` on, or of fewer if the file ends before. */
static int bytes_hash(const struct input_file *f, off_t at, char *bytes, uint64_t *hash)
{
  size_t size = 0;
  while (size < INPUT_END_BYTES) {
    int step = watchdog_begin(ERR_IO, "reading", f->path);
    ssize_t got =
        retry_pread(f->descriptor, bytes + size, INPUT_END_BYTES - size, at + (off_t)size);
    watchdog_end(step);
    CHECK(got >= 0, ERR_IO, "cannot read '%s': %s", f->path, strerror(errno));
    if (got == 0) break;
    size += (size_t)got;
  }
  *hash = hash64(bytes, size);
  return OK;
}

static int mark_take(const struct input_file *f, char *bytes, struct input_mark *mark)
{
  off_t size = f->facts.size;
  *mark =
      (struct input_mark){.size = size, .seconds = f->facts.modified.tv_sec, .shapes = f->shapes};
  TRY(bytes_hash(f, 0, bytes, &mark->head));
  return bytes_hash(f, size > INPUT_END_BYTES ? size - INPUT_END_BYTES : 0, bytes, &mark->tail);
}

int input_file_mark(const struct input_file *f, struct input_mark *mark)
{
  char *bytes = malloc(INPUT_END_BYTES);
  CHECK(bytes, ERR_MEMORY, "cannot allocate %d bytes", INPUT_END_BYTES);
  int status = mark_take(f, bytes, mark);
  free(bytes);
  return status;
}

int input_files_mark(struct input_mark **marks, gidx *count)
{
  *count = 0;
  for (const struct input_file *f = all; f; f = f->next) ++*count;
  struct input_mark *mark = *marks = calloc((size_t)*count + 1, sizeof *mark);
  CHECK(mark, ERR_MEMORY, "cannot allocate the marks of %lld inputs", (long long)*count);
  for (struct input_file *f = all; f; f = f->next, mark++) TRY(input_file_mark(f, mark));
  return OK;
}

int input_mark_differs(const struct input_mark *mine, const struct input_mark *other, char *text,
                       size_t capacity)
{
  char here[64], there[64];
  file_facts_time(&(struct timespec){mine->seconds, 0}, here, sizeof here);
  file_facts_time(&(struct timespec){other->seconds, 0}, there, sizeof there);
  if (mine->size != other->size)
    snprintf(text, capacity, "%lld bytes, not %lld", (long long)other->size, (long long)mine->size);
  else if (mine->head != other->head || mine->tail != other->tail)
    snprintf(text, capacity, "its %s %d bytes differ", mine->head != other->head ? "first" : "last",
             INPUT_END_BYTES);
  else if (mine->shapes != other->shapes)
    snprintf(text, capacity, "its arrays have other types or shapes");
  else if (mine->seconds != other->seconds)
    snprintf(text, capacity, "modified %s, not %s; copies keep their time with `cp -p`", there,
             here);
  else
    return 0;
  return 1;
}

int input_marks_differ(const struct input_mark *mine, const struct input_mark *other, gidx count,
                       char *text, size_t capacity, const char **path)
{
  const struct input_file *f = all;
  for (gidx i = 0; f && i < count; i++, f = f->next)
    if (input_mark_differs(&mine[i], &other[i], text, capacity)) {
      *path = f->path;
      return 1;
    }
  return 0;
}
