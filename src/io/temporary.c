/* SPDX-License-Identifier: BSD-3-Clause
 * A fixed array lists the files that must be removed or renamed at the end of the process.  So a
 * signal handler can do that. */
#include "io/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/retry.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/watchdog.h"

/* KEPT: the value of t->slot for a file that needs no slot any more. */
enum { MAX_SLOTS = 32, DIGITS = 16, KEPT = -1 };

/* A signal may come at any time.  So is_taken is set last, when the names are complete. */
static struct slot {
  _Atomic int is_taken;
  int is_shown; /* it has its final name; if the run fails, it is renamed to `failed` */
  char name[sizeof((struct temporary *)0)->name], failed[sizeof((struct temporary *)0)->name];
} slots[MAX_SLOTS];

/* End the process as the signal would have done.  temporaries_end() calls rename() and unlink(),
 * which are safe in a signal handler. */
static void signal_end(int number)
{
  temporaries_end(1);
  signal(number, SIG_DFL);
  raise(number);
}

static void exit_end(void)
{
  temporaries_end(1);
}

/* Would this signal end the process, so that the handler must remove temporary files?  Libraries
 * that MPI loads may have set handlers: LLVM sets some for signals that end programs, and these
 * would end the process too.  Handlers of other signals are left alone. */
static int is_end(int number)
{
  struct sigaction now;
  int ends = number == SIGHUP || number == SIGINT || number == SIGTERM;
  if (sigaction(number, NULL, &now) || now.sa_handler == SIG_IGN) return 0;
  return now.sa_handler == SIG_DFL || (ends && !stop_takes(number));
}

/* Leave no temporary when the process ends by a signal or by exit(), which HDF5 itself calls in
 * some places when memory runs out. */
static void endings_watch(void)
{
  static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
  static int is_watched;
  if (is_watched) return;
  is_watched = 1;
  atexit(exit_end);
  for (int i = 0; i < LENGTH(signals); i++) {
    struct sigaction end = {.sa_handler = signal_end};
    if (is_end(signals[i])) sigaction(signals[i], &end, NULL);
  }
}

/* Take a slot for a file.  The callers have checked that the names fit. */
static int slot_take(const char *name, const char *failed, int *slot)
{
  endings_watch();
  int i = 0;
  while (i < MAX_SLOTS && slots[i].is_taken) i++;
  CHECK(i < MAX_SLOTS, ERR_INTERNAL, "more than %d unfinished files", MAX_SLOTS);
  strcpy(slots[i].name, name);
  strcpy(slots[i].failed, failed ? failed : "");
  slots[i].is_shown = 0;
  slots[i].is_taken = 1;
  *slot = i;
  return OK;
}

void temporaries_end(int is_failed)
{
  for (int i = MAX_SLOTS - 1; i >= 0; i--) {
    struct slot *s = &slots[i];
    if (!s->is_taken) continue;
    int is_kept = is_failed && s->failed[0] && rename(s->name, s->failed) == 0;
    if (!is_kept && !s->is_shown) unlink(s->name);
    s->is_taken = 0;
  }
}

int temporary_guard(const char *name)
{
  int slot;
  CHECK(strlen(name) < sizeof slots[0].name, ERR_CREATE,
        "the name '%s' is too long: give a shorter one", name);
  return slot_take(name, NULL, &slot);
}

/* The name has 64 random bits, so no other file has it.  Therefore it can be listed before the file
 * is created, and a signal between the two steps leaves no unlisted file. */
int temporary_create(struct temporary *t, const char *path, const char *failed, FILE **out)
{
  uint64_t bits;
  memset(t, 0, sizeof *t);
  CHECK(strlen(path) + DIGITS + 8 < sizeof t->name, ERR_CREATE,
        "the name '%s' is too long: give a shorter one", path);
  CHECK(getrandom(&bits, sizeof bits, 0) == sizeof bits, ERR_CREATE, "no random numbers: %s",
        strerror(errno));
  strcpy(t->path, path);
  snprintf(t->name, sizeof t->name, "%.4064s.%0*llx.tmp", path, DIGITS, (unsigned long long)bits);
  TRY(slot_take(t->name, failed, &t->slot));
  int step = watchdog_begin(ERR_IO, "opening", t->name);
  int file = retry_open(t->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
  int error = errno;
  if (file >= 0 && !out) close(file);
  watchdog_end(step);
  if (file < 0) slots[t->slot].is_taken = 0;
  CHECK(file >= 0, ERR_CREATE, "cannot create '%s': %s", t->name, strerror(error));
  if (!out) return OK;
  *out = fdopen(file, "w");
  CHECK(*out, ERR_MEMORY, "cannot write '%s': %s", t->name, strerror(errno));
  return OK;
}

int temporary_write(FILE *file, const char *name, const void *bytes, size_t count)
{
  int step = watchdog_begin(ERR_IO, "writing", name), error = 0;
  for (size_t done = 0; done < count && !error;) {
    ssize_t n = write(fileno(file), (const char *)bytes + done, count - done);
    if (n > 0)
      done += (size_t)n;
    else if (errno != EINTR)
      error = errno;
  }
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot write '%s': %s", name, strerror(error));
  return OK;
}

int temporary_close(const struct temporary *t, FILE *file)
{
  int step = watchdog_begin(ERR_IO, "bringing to the disk", t->name);
  int error = fflush(file) == 0 && retry_fsync(fileno(file)) == 0 ? 0 : errno;
  if (fclose(file) && !error) error = errno;
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot write '%s': %s", t->name, strerror(error));
  return OK;
}

static int name_give(const struct temporary *t, const char *name)
{
  int step = watchdog_begin(ERR_IO, "renaming", t->name), failed = rename(t->name, name);
  watchdog_end(step);
  CHECK(!failed, ERR_IO, "cannot rename '%s' to '%s': %s", t->name, name, strerror(errno));
  return OK;
}

int temporary_show(struct temporary *t)
{
  struct slot *s = &slots[t->slot];
  TRY(name_give(t, t->path));
  s->is_taken = 0;
  strcpy(t->name, t->path);
  strcpy(s->name, t->path);
  s->is_shown = 1;
  s->is_taken = s->failed[0] != '\0';
  return OK;
}

void temporary_kept_name(const struct temporary *t, const char *end, char *name)
{
  int length = (int)(strlen(t->path) + 1 + DIGITS);
  snprintf(name, sizeof t->name, "%.*s%s", length, t->name, end);
}

int temporary_keep(struct temporary *t, const char *end)
{
  char name[sizeof t->name];
  if (t->slot == KEPT) return OK;
  temporary_kept_name(t, end, name);
  TRY(name_give(t, name));
  slots[t->slot].is_taken = 0;
  temporary_adopt(t, t->path, name);
  return OK;
}

void temporary_adopt(struct temporary *t, const char *path, const char *name)
{
  if (path != t->path) snprintf(t->path, sizeof t->path, "%s", path);
  snprintf(t->name, sizeof t->name, "%s", name);
  t->slot = KEPT;
}

int temporary_publish(struct temporary *t)
{
  if (t->slot == KEPT) return name_give(t, t->path);
  if (strcmp(t->name, t->path) != 0) TRY(temporary_show(t));
  slots[t->slot].is_taken = 0;
  return OK;
}

void temporary_drop(struct temporary *t)
{
  int step = watchdog_begin(ERR_IO, "removing", t->name);
  unlink(t->name);
  watchdog_end(step);
  slots[t->slot].is_taken = 0;
}

int temporary_is_kept(const char *file, const char *name, const char *end)
{
  size_t length = strlen(name);
  if (strncmp(file, name, length) != 0 || file[length] != '.') return 0;
  const char *digits = file + length + 1;
  return strspn(digits, "0123456789abcdef") == DIGITS && strcmp(digits + DIGITS, end) == 0;
}

int temporary_is_of(const char *file, const char *name)
{
  return temporary_is_kept(file, name, ".tmp");
}

int temporary_is_own(const char *path)
{
  for (int i = 0; i < MAX_SLOTS; i++)
    if (slots[i].is_taken && strcmp(slots[i].name, path) == 0) return 1;
  return 0;
}

int temporary_text_publish(const char *path, const char *text, size_t bytes)
{
  struct temporary t;
  FILE *file;
  TRY(temporary_create(&t, path, NULL, &file));
  int status = temporary_write(file, t.name, text, bytes), closed = temporary_close(&t, file);
  if (!status) status = closed;
  if (!status) status = temporary_publish(&t);
  if (status) temporary_drop(&t);
  return status;
}
