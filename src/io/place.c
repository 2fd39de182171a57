/* SPDX-License-Identifier: BSD-3-Clause
 * A claim is an entry of a fixed table.  It has the descriptor of its lock. */
#include "io/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/retry.h"
#include "base/status.h"
#include "base/text.h"
#include "base/watchdog.h"
#include "io/inputs.h"
#include "io/journal.h"
#include "io/ranges.h"
#include "io/temporary.h"

enum { MAX_CLAIMS = 16, MAX_LISTED = 20000, MAX_WARNINGS = 4, LOCK_TRIES = 1000 };

/* A result is claimed once.  Its companions may belong to several results of a run: used.in,
 * run.log, run.json, and the names that the first two get if the run fails. */
enum claim_kind { CLAIM_RESULT, CLAIM_USED, CLAIM_LOG, CLAIM_PAGE, CLAIM_FAILED };
static struct claim {
  char path[sizeof((struct output_path *)0)->file];
  enum claim_kind kind;
  int lock;        /* -1: none */
  char left[4096]; /* for a result: the journal that a stopped job left (journal.h); "": none */
} claims[MAX_CLAIMS];
static int n_claims, shared = -1; /* the lock of output_claim_shared() */

/* Create a folder, and the missing ones above it. */
static int folder_make(const char *folder)
{
  char path[4096];
  CHECK(strlen(folder) < sizeof path, ERR_CREATE, "the name '%s' is too long: give a shorter one",
        folder);
  strcpy(path, folder);
  for (char *slash = path; slash;) {
    slash = strchr(slash + 1, '/');
    if (slash) *slash = '\0';
    CHECK(mkdir(path, 0777) == 0 || errno == EEXIST, ERR_CREATE, "cannot make folder '%s': %s",
          path, strerror(errno));
    if (slash) *slash = '/';
  }
  struct stat facts;
  CHECK(stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode), ERR_CREATE, "'%s' is not a folder",
        folder);
  CHECK(access(folder, W_OK | X_OK) == 0, ERR_CREATE, "cannot write in folder '%s': %s", folder,
        strerror(errno));
  return OK;
}

void path_folder(const char *path, char *folder)
{
  const char *slash = strrchr(path, '/');
  int length = !slash ? 1 : slash == path ? 1 : (int)(slash - path);
  snprintf(folder, 4096, "%.*s", length, slash ? path : ".");
}

static const char *name_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* out[4096] <- the path with symbolic links of its folder resolved. */
static int path_resolve(const char *path, char *out)
{
  char folder[4096];
  path_folder(path, folder);
  char *resolved = realpath(folder, NULL);
  CHECK(resolved, errno == ENOMEM ? ERR_MEMORY : ERR_CREATE, "cannot create '%s': %s", path,
        strerror(errno));
  int length =
      snprintf(out, 4096, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, name_of(path));
  free(resolved);
  CHECK(length < 4096 - 64, ERR_CREATE, "the name '%s' is too long: give a shorter one", path);
  return OK;
}

/* A run holds the lock only if the file that it locked still has the lock's name.  The run that
 * held the lock before removes this name at its end, and a third run may then create another file
 * of this name. */
static int lock_is_current(int lock, const char *path)
{
  struct stat held, named;
  return fstat(lock, &held) == 0 && lstat(path, &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

/* *out <- a lock on the empty file at `path`; -1: the file system has no locks.  The file of an
 * exclusive lock is removed at the end of the run.  The file of a shared lock stays, because other
 * runs may hold it. */
static int lock_take(const char *path, const char *what, int how, int *out)
{
  for (int i = 0; i < LOCK_TRIES; i++) {
    int lock = retry_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    CHECK(lock >= 0, ERR_CREATE, "cannot lock '%s' by '%s': %s", what, path, strerror(errno));
    struct stat facts;
    int is_ours = fstat(lock, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == 0;
    int error = !is_ours ? EEXIST : flock(lock, how | LOCK_NB) ? errno : 0;
    if (!error && lock_is_current(lock, path)) {
      *out = lock;
      return how == LOCK_EX ? temporary_guard(path) : OK;
    }
    close(lock);
    CHECK(error != EEXIST, ERR_CREATE, "cannot lock '%s': '%s' is there and is no lock", what,
          path);
    CHECK(error != EWOULDBLOCK, ERR_CREATE, "another run is writing here, it has '%s' locked",
          what);
    if (error && error != EINTR) {
      log_warn("'%s' is without a lock (%s): let no other run write there", what, strerror(error));
      return OK;
    }
  }
  FAIL(ERR_CREATE, "another run is writing here, it has '%s' locked", what);
}

static void lock_name(const char *path, char *lock)
{
  const char *name = name_of(path);
  snprintf(lock, 4096, "%.*s.%.4000s.lock", (int)(name - path), path, name);
}

int output_claim_shared(const char *path)
{
  char resolved[4096], lock[4096];
  TRY(path_resolve(path, resolved));
  lock_name(resolved, lock);
  int step = watchdog_begin(ERR_IO, "claiming", path);
  /* a job that ends without a record may hold it exclusively for a moment (ranges_give_up()) */
  const struct timespec moment = {.tv_nsec = 10000000};
  int status = lock_take(lock, resolved, LOCK_SH, &shared);
  for (int i = 0; i < 50 && status == ERR_CREATE; i++) {
    status_clear();
    nanosleep(&moment, NULL);
    status = lock_take(lock, resolved, LOCK_SH, &shared);
  }
  watchdog_end(step);
  return status;
}

/* Add a resolved path to the table.  Of the companions only run.log gets a lock: a run that writes
 * any of them holds it. */
static int claim_add(const char *path, enum claim_kind kind)
{
  char lock[4096];
  for (int i = 0; i < n_claims; i++) {
    if (strcmp(claims[i].path, path) != 0) continue;
    CHECK(kind != CLAIM_RESULT && claims[i].kind == kind, ERR_CREATE,
          "'%s' would be two outputs of this run: give them two names", path);
    return OK;
  }
  CHECK(n_claims < MAX_CLAIMS, ERR_INTERNAL, "more than %d outputs", MAX_CLAIMS);
  struct claim *c = &claims[n_claims];
  strcpy(c->path, path);
  c->kind = kind;
  c->lock = -1;
  c->left[0] = '\0';
  lock_name(path, lock);
  if (kind == CLAIM_RESULT || kind == CLAIM_LOG) TRY(lock_take(lock, path, LOCK_EX, &c->lock));
  n_claims++;
  return OK;
}

static struct claim *claim_of(const char *path)
{
  for (int i = 0; i < n_claims; i++)
    if (strcmp(claims[i].path, path) == 0) return &claims[i];
  return NULL;
}

const char *output_left(const char *path)
{
  const struct claim *c = claim_of(path);
  return c ? c->left : "";
}

int output_check_left(const char *path, int force)
{
  const char *left = output_left(path);
  CHECK(!*left || force, ERR_CREATE,
        "'%s' is of a job that stopped: finish that job with --resume of `sagitta encode` or "
        "`route`, or add --force to give it up",
        left);
  return OK;
}

void output_left_discard(const char *path)
{
  struct claim *c = claim_of(path);
  if (!c || !c->left[0]) return;
  journal_discard(c->left);
  c->left[0] = '\0';
}

int output_check_free(const char *path, int force)
{
  struct stat facts;
  int step = watchdog_begin(ERR_IO, "looking at", path), there = lstat(path, &facts) == 0;
  watchdog_end(step);
  CHECK(!there || !S_ISDIR(facts.st_mode), ERR_CREATE, "cannot create '%s': it is a folder", path);
  CHECK(!there || S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode), ERR_CREATE,
        "cannot create '%s': it is not a file", path);
  CHECK(!there || force, ERR_CREATE, "'%s' already exists: add --force to replace it", path);
  return output_check_left(path, force);
}

/* Resolve a path and claim it. */
static int path_claim(const char *path, enum claim_kind kind, char *resolved)
{
  TRY(path_resolve(path, resolved));
  TRY(output_check_free(resolved, 1));
  return claim_add(resolved, kind);
}

int output_claim(const char *path, int force, char *resolved)
{
  CHECK(*name_of(path), ERR_CREATE, "the output '%s' has no name", path);
  int step = watchdog_begin(ERR_IO, "claiming", path);
  int status = path_claim(path, CLAIM_RESULT, resolved);
  if (!status) status = journal_find(resolved, claims[n_claims - 1].left);
  if (!status) status = ranges_check_free(resolved);
  if (!status) status = output_check_free(resolved, force);
  watchdog_end(step);
  return status;
}

/* Set the names in *place, not resolved yet. */
static int path_name(struct output_path *place, const char *output, const char *name)
{
  size_t capacity = sizeof place->file;
  int length = (int)strlen(output), is_file = text_ends_in(output, ".h5");
  const char *last = strrchr(output, '/');
  CHECK(length > 0 && strcmp(last ? last + 1 : output, ".h5") != 0, ERR_USAGE,
        "the output '%s' has no name", output);
  CHECK(text_is_clean(output), ERR_USAGE,
        "the output '%s' has control characters in its name, or is not UTF-8", output);
  CHECK((size_t)length + strlen(name) + 64 < capacity, ERR_CREATE,
        "the name '%s' is too long: give a shorter one", output);
  while (length > 1 && output[length - 1] == '/') length--;
  int stem = is_file ? length - 3 : length;
  char joint = is_file ? '.' : '/';
  if (is_file)
    snprintf(place->shown, capacity, "%s", output);
  else
    snprintf(place->shown, capacity, "%.*s/%s", length, output, name);
  snprintf(place->used, capacity, "%.*s%cused.in", stem, output, joint);
  snprintf(place->log, capacity, "%.*s%crun.log", stem, output, joint);
  snprintf(place->page, capacity, "%.*s%crun.json", stem, output, joint);
  snprintf(place->used_failed, capacity, "%.*s%cused.failed.in", stem, output, joint);
  snprintf(place->log_failed, capacity, "%.*s%crun.failed.log", stem, output, joint);
  return OK;
}

/* Claim a companion.  path <- its resolved path. */
static int sidecar_claim(char *path, enum claim_kind kind)
{
  char written[sizeof claims[0].path];
  strcpy(written, path);
  int step = watchdog_begin(ERR_IO, "claiming", written), status = path_claim(written, kind, path);
  watchdog_end(step);
  return status;
}

int output_check_given(const char *output)
{
  CHECK(output, ERR_USAGE, "'--output' is missing: a folder, or a file that ends in .h5");
  return OK;
}

int output_path(struct output_path *place, const char *output, const char *name, int force)
{
  char folder[4096];
  TRY(output_check_given(output));
  TRY(path_name(place, output, name));
  path_folder(place->shown, folder);
  int step = watchdog_begin(ERR_IO, "making folder", folder), status = folder_make(folder);
  watchdog_end(step);
  TRY(status);
  TRY(output_claim(place->shown, force, place->file));
  TRY(sidecar_claim(place->used, CLAIM_USED));
  TRY(sidecar_claim(place->log, CLAIM_LOG));
  TRY(sidecar_claim(place->page, CLAIM_PAGE));
  TRY(sidecar_claim(place->used_failed, CLAIM_FAILED));
  return sidecar_claim(place->log_failed, CLAIM_FAILED);
}

static int is_same_file(const char *a, const char *b)
{
  struct stat one, other;
  int step = watchdog_begin(ERR_IO, "looking at", b);
  int same = stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
             one.st_ino == other.st_ino;
  watchdog_end(step);
  return same;
}

int outputs_check_inputs(const char *const *inputs, int count, const char *deck)
{
  for (int i = 0; i < count; i++) {
    char *file = NULL;
    const char *object;
    if (!inputs[i]) continue;
    TRY(input_split(inputs[i], &(struct input_standard){.object = "", .file = ""}, &file, &object));
    int at = 0;
    while (at < n_claims && !is_same_file(claims[at].path, file)) at++;
    free(file);
    CHECK(at == n_claims, ERR_CREATE, "'%s' would replace an input of this run, '%s'",
          claims[at].path, inputs[i]);
  }
  for (int i = 0; i < n_claims && deck; i++)
    CHECK(claims[i].kind == CLAIM_USED || !is_same_file(claims[i].path, deck), ERR_CREATE,
          "'%s' would replace an input of this run, the deck '%s'%s", claims[i].path, deck,
          claims[i].kind == CLAIM_FAILED ? ", should the run fail: give the deck another name"
                                         : "");
  return OK;
}

/* Warn about temporary files of one result that crashed runs left.  In a very large folder the
 * search ends early. */
static void leftovers_find(const char *path)
{
  char folder[4096], found[4096 + 256];
  int told = 0;
  path_folder(path, folder);
  DIR *open_folder = opendir(folder);
  if (!open_folder) return;
  for (int i = 0; i < MAX_LISTED && told < MAX_WARNINGS; i++) {
    const struct dirent *entry = readdir(open_folder);
    if (!entry) break;
    if (!temporary_is_of(entry->d_name, name_of(path))) continue;
    snprintf(found, sizeof found, "%s/%s", folder, entry->d_name);
    if (temporary_is_own(found)) continue;
    log_warn("'%s' is left from a run that was killed: remove it", found);
    told++;
  }
  closedir(open_folder);
}

void outputs_warn_leftovers(void)
{
  for (int i = 0; i < n_claims; i++) {
    int step = watchdog_begin(ERR_IO, "looking for files beside", claims[i].path);
    leftovers_find(claims[i].path);
    watchdog_end(step);
  }
}

void outputs_give_up(void)
{
  ranges_give_up(shared);
}

void outputs_release(void)
{
  int step = watchdog_begin(ERR_IO, "giving back the locks", NULL);
  outputs_give_up();
  temporaries_end(0);
  for (int i = 0; i < n_claims; i++)
    if (claims[i].lock >= 0) close(claims[i].lock);
  if (shared >= 0) close(shared);
  shared = -1;
  n_claims = 0;
  watchdog_end(step);
}

void output_remove(const char *path)
{
  int step = watchdog_begin(ERR_IO, "removing", path);
  unlink(path);
  watchdog_end(step);
}
