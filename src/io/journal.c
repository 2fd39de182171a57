/* SPDX-License-Identifier: BSD-3-Clause
 * All numbers have 64 bits, in the byte order of the machine.  On a machine of the other byte order
 * the version in the head does not match. */
#include "io/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/retry.h"
#include "base/status.h"
#include "base/text.h"
#include "base/watchdog.h"
#include "io/place.h"
#include "io/ranges.h"
#include "io/temporary.h"

static const char magic[16] = "sagitta journal";
enum { PAGE = 1 << 16, RECORDS = 2 };

static const gidx MOST = (gidx)1 << 48;

/* The beginning of a record. */
struct record_head {
  gidx number, rows, bytes;
  unsigned char leaves[SHA256_BYTES]; /* hash of the chunks' hashes */
  unsigned char hash[SHA256_BYTES];   /* hash of the bytes in front of it, and of the record */
};

/* out[bytes] <- bytes of the file from `at` on.  Bytes after the end of the file are 0. */
static int bytes_read(const struct journal *j, gidx at, gidx bytes, void *out)
{
  int step = watchdog_begin(ERR_IO, "reading", j->name), error = 0;
  memset(out, 0, (size_t)bytes);
  for (gidx done = 0; done < bytes && !error;) {
    ssize_t got = retry_pread(j->file, (char *)out + done, (size_t)(bytes - done), at + done);
    if (got < 0) error = errno;
    if (got <= 0) break;
    done += got;
  }
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot read '%s': %s", j->name, strerror(error));
  return OK;
}

static int bytes_write(const struct journal *j, gidx at, gidx bytes, const void *in)
{
  int step = watchdog_begin(ERR_IO, "writing", j->name), error = 0;
  for (gidx done = 0; done < bytes && !error;) {
    ssize_t put = retry_pwrite(j->file, (const char *)in + done, (size_t)(bytes - done), at + done);
    if (put <= 0) error = put ? errno : EIO;
    done += put;
  }
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot write '%s': %s", j->name, strerror(error));
  return OK;
}

static int disk_sync(const struct journal *j)
{
  int step = watchdog_begin(ERR_IO, "bringing to the disk", j->name);
  int error = retry_fsync(j->file) ? errno : 0;
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot bring '%s' to the disk: %s", j->name, strerror(error));
  return OK;
}

/* The offset of the hashes of array a; with a = arrays the end of all hashes. */
static gidx leaves_at(const struct journal *j, int a)
{
  gidx at = PAGE;
  for (int i = 0; i < a; i++) at += j->head.chunks[i] * SHA256_BYTES;
  return at;
}

static gidx record_at(const struct journal *j, gidx number)
{
  gidx first = round_up(leaves_at(j, (int)j->head.arrays), PAGE);
  return first + number % RECORDS * round_up((gidx)sizeof(struct record_head) + j->head.most, PAGE);
}

/* The number of chunks of an array that have any of the first `rows` rows. */
static gidx chunks_of(const struct journal *j, int a, gidx rows)
{
  return ceil_div(rows, j->head.chunk_rows[a]);
}

static int record_hash(const struct record_head *h, const void *record, unsigned char *hash)
{
  struct sha256 sum = {0};
  int status = sha256_begin(&sum);
  if (!status) status = sha256_add(&sum, h, offsetof(struct record_head, hash));
  if (!status) status = sha256_add(&sum, record, (size_t)h->bytes);
  if (!status) return sha256_end(&sum, hash);
  sha256_free(&sum);
  return status;
}

static int leaves_hash(const struct journal *j, gidx rows, const unsigned char *const *leaves,
                       unsigned char *hash)
{
  struct sha256 sum = {0};
  int status = sha256_begin(&sum);
  for (int a = 0; a < j->head.arrays && !status; a++)
    status = sha256_add(&sum, leaves[a], (size_t)(chunks_of(j, a, rows) * SHA256_BYTES));
  if (!status) return sha256_end(&sum, hash);
  sha256_free(&sum);
  return status;
}

int journal_create(struct journal *j, const char *name, int arrays, const gidx *chunks,
                   const gidx *chunk_rows, gidx most)
{
  int claimed = j->file;
  gidx id = j->head.id;
  free(j->record);
  *j = (struct journal){
      .file = claimed,
      .head = {.version = JOURNAL_VERSION, .arrays = arrays, .most = most, .id = id}};
  snprintf(j->name, sizeof j->name, "%s", name);
  memcpy(j->head.magic, magic, sizeof magic);
  for (int a = 0; a < arrays; a++)
    j->head.chunks[a] = chunks[a], j->head.chunk_rows[a] = chunk_rows[a];
  TRY(sha256(&j->head, offsetof(struct journal_head, hash), j->head.hash));
  int step = watchdog_begin(ERR_IO, "opening", j->name);
  int failed = claimed && ftruncate(claimed, 0) != 0;
  if (!claimed) j->file = retry_open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
  watchdog_end(step);
  if (j->file < 0) failed = 1, j->file = 0;
  CHECK(!failed, ERR_CREATE, "cannot create '%s': %s", name, strerror(errno));
  return bytes_write(j, 0, sizeof j->head, &j->head);
}

/* Read the head, and check its hash. */
static int head_read(struct journal *j)
{
  const struct journal_head *h = &j->head;
  unsigned char hash[SHA256_BYTES];
  TRY(bytes_read(j, 0, sizeof *h, &j->head));
  TRY(sha256(h, offsetof(struct journal_head, hash), hash));
  CHECK(memcmp(h->magic, magic, sizeof magic) == 0 && memcmp(hash, h->hash, sizeof hash) == 0,
        ERR_INPUT, "'%s' is damaged, or no journal", j->name);
  CHECK(h->version == JOURNAL_VERSION, ERR_INPUT,
        "'%s' has version %lld, and this program reads %d: use the Sagitta that wrote it", j->name,
        (long long)h->version, JOURNAL_VERSION);
  int fits = h->arrays >= 1 && h->arrays <= JOURNAL_ARRAYS && h->most > 0 && h->most < MOST;
  for (int a = 0; a < h->arrays && fits; a++)
    fits = h->chunks[a] >= 0 && h->chunks[a] < MOST / SHA256_BYTES && h->chunk_rows[a] > 0;
  CHECK(fits, ERR_INPUT, "'%s' is damaged, or no journal", j->name);
  return OK;
}

int journal_leaves(const struct journal *j, int a, unsigned char *leaves)
{
  return bytes_read(j, leaves_at(j, a), chunks_of(j, a, j->rows) * SHA256_BYTES, leaves);
}

/* *same <- whether the hashes of the chunks match those of a record. */
static int leaves_check(struct journal *j, const struct record_head *h, int *same)
{
  unsigned char *leaves[JOURNAL_ARRAYS] = {NULL}, hash[SHA256_BYTES];
  int status = OK;
  j->rows = h->rows;
  for (int a = 0; a < j->head.arrays && !status; a++) {
    leaves[a] = malloc((size_t)(chunks_of(j, a, h->rows) * SHA256_BYTES) + 1);
    if (leaves[a])
      status = journal_leaves(j, a, leaves[a]);
    else
      status = status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate the hashes of '%s'",
                           j->name);
  }
  if (!status) status = leaves_hash(j, h->rows, (const unsigned char *const *)leaves, hash);
  *same = !status && memcmp(hash, h->leaves, sizeof hash) == 0;
  for (int a = 0; a < JOURNAL_ARRAYS; a++) free(leaves[a]);
  return status;
}

static int head_fits(const struct journal *j, const struct record_head *h)
{
  int fits = h->number > 0 && h->rows > 0 && h->bytes > 0 && h->bytes <= j->head.most;
  for (int a = 0; a < j->head.arrays && fits; a++)
    fits = chunks_of(j, a, h->rows) <= j->head.chunks[a];
  return fits;
}

/* Read the record in one of the two places into *j, if it is valid and newer than the record in
 * *j. */
static int record_take(struct journal *j, gidx place)
{
  struct record_head h;
  unsigned char hash[SHA256_BYTES];
  gidx at = record_at(j, place), rows = j->rows;
  int same = 0;
  TRY(bytes_read(j, at, sizeof h, &h));
  if (!head_fits(j, &h) || h.number % RECORDS != place || h.number <= j->number) return OK;
  unsigned char *record = malloc((size_t)h.bytes);
  CHECK(record, ERR_MEMORY, "cannot allocate a record of %lld bytes", (long long)h.bytes);
  int status = bytes_read(j, at + (gidx)sizeof h, h.bytes, record);
  if (!status) status = record_hash(&h, record, hash);
  if (!status && memcmp(hash, h.hash, sizeof hash) == 0) status = leaves_check(j, &h, &same);
  if (!same) {
    j->rows = rows;
    free(record);
    return status;
  }
  free(j->record);
  j->record = record;
  j->bytes = h.bytes;
  j->number = h.number;
  return OK;
}

static int records_read(struct journal *j)
{
  TRY(head_read(j));
  for (int i = 0; i < RECORDS; i++) TRY(record_take(j, i));
  return OK;
}

int journal_is_current(const struct journal *j)
{
  struct stat open_one, named;
  return fstat(j->file, &open_one) == 0 && lstat(j->name, &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Open and lock the file.  Returns 0, or the system's error. */
static int file_claim(struct journal *j, int makes, int *has_lock)
{
  enum { TRIES = 1000 }; /* another job may remove the name meanwhile */
  for (int i = 0; i < TRIES; i++) {
    int file = retry_open(j->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (makes ? O_CREAT : 0));
    if (file < 0) return errno;
    int error = flock(file, LOCK_EX | LOCK_NB) ? errno : 0;
    j->file = file;
    *has_lock = !error;
    if (error != EWOULDBLOCK && error != EINTR && journal_is_current(j)) return 0;
    close(file);
    j->file = 0;
    if (error == EWOULDBLOCK) return error;
  }
  return EWOULDBLOCK;
}

/* Read a journal that this run has locked.  A damaged or incomplete one counts as empty. */
static int claimed_read(struct journal *j)
{
  struct stat facts;
  CHECK(fstat(j->file, &facts) == 0, ERR_IO, "cannot look at '%s': %s", j->name, strerror(errno));
  int status = facts.st_size ? records_read(j) : OK;
  if (status != ERR_INPUT) return status;
  status_clear();
  j->number = j->rows = 0;
  return OK;
}

int journal_claim(struct journal *j, const char *name, int makes, int *error, int *has_lock)
{
  *j = (struct journal){0};
  *has_lock = 0;
  snprintf(j->name, sizeof j->name, "%s", name);
  int step = watchdog_begin(ERR_IO, "locking", j->name);
  *error = file_claim(j, makes, has_lock);
  watchdog_end(step);
  int is_known = !*error || *error == EWOULDBLOCK || (*error == ENOENT && !makes);
  CHECK(is_known, ERR_CREATE, "cannot open '%s': %s", name, strerror(*error));
  return *error ? OK : claimed_read(j);
}

int journal_clear(struct journal *j)
{
  int step = watchdog_begin(ERR_IO, "writing", j->name);
  int error = ftruncate(j->file, 0) ? errno : 0;
  watchdog_end(step);
  CHECK(!error, ERR_IO, "cannot write '%s': %s", j->name, strerror(error));
  j->number = j->rows = 0;
  return disk_sync(j);
}

int journal_open(struct journal *j, const char *name)
{
  *j = (struct journal){0};
  snprintf(j->name, sizeof j->name, "%s", name);
  int step = watchdog_begin(ERR_IO, "opening", j->name);
  j->file = retry_open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  watchdog_end(step);
  if (j->file < 0) {
    j->file = 0;
    FAIL(ERR_IO, "cannot open '%s': %s", name, strerror(errno));
  }
  TRY(records_read(j));
  CHECK(j->number, ERR_INPUT, "'%s' is damaged: no record of it is whole", name);
  return OK;
}

int journal_add(struct journal *j, gidx rows, const unsigned char *const *leaves,
                const void *record, gidx bytes)
{
  struct record_head h = {.number = j->number + 1, .rows = rows, .bytes = bytes};
  unsigned char *copy = malloc((size_t)bytes);
  CHECK(copy, ERR_MEMORY, "cannot allocate a record of %lld bytes", (long long)bytes);
  memcpy(copy, record, (size_t)bytes);
  free(j->record);
  j->record = copy;
  j->bytes = bytes;
  CHECK(head_fits(j, &h), ERR_INTERNAL, "a record of %lld bytes does not fit '%s'",
        (long long)bytes, j->name);
  TRY(leaves_hash(j, rows, leaves, h.leaves));
  TRY(record_hash(&h, record, h.hash));
  for (int a = 0; a < j->head.arrays; a++) {
    gidx from = j->rows / j->head.chunk_rows[a], end = chunks_of(j, a, rows);
    TRY(bytes_write(j, leaves_at(j, a) + from * SHA256_BYTES, (end - from) * SHA256_BYTES,
                    leaves[a] + from * SHA256_BYTES));
  }
  TRY(bytes_write(j, record_at(j, h.number) + (gidx)sizeof h, bytes, record));
  TRY(bytes_write(j, record_at(j, h.number), sizeof h, &h));
  TRY(disk_sync(j));
  j->number = h.number;
  j->rows = rows;
  return OK;
}

void journal_close(struct journal *j)
{
  if (j->file > 0) close(j->file);
  free(j->record);
  *j = (struct journal){0};
}

int journal_is(const char *name)
{
  return text_ends_in(name, JOURNAL_END);
}

/* other[4096] <- the name with `other_end` instead of `end`. */
static void name_change(const char *name, const char *end, const char *other_end, char *other)
{
  snprintf(other, 4096, "%.*s%s", (int)(strlen(name) - strlen(end)), name, other_end);
}

void journal_growing(const char *name, char *growing)
{
  name_change(name, JOURNAL_END, GROWING_END, growing);
}

int journal_is_growing(const char *name)
{
  return text_ends_in(name, GROWING_END);
}

void journal_of(const char *growing, char *name)
{
  name_change(growing, GROWING_END, JOURNAL_END, name);
}

/* *is_there <- does the other file of the pair exist?  It is an error if this cannot be known,
 * since an existing file must not be taken for lost. */
static int other_find(const char *path, int *is_there)
{
  struct stat facts;
  *is_there = lstat(path, &facts) == 0;
  CHECK(*is_there || errno == ENOENT, ERR_IO, "cannot look at '%s': %s", path, strerror(errno));
  return OK;
}

/* A journal or a growing file of the result was found; name <- the journal.  Check that the other
 * one of the pair exists too.  A journal without its growing file is removed. */
static int found_take(const char *found, char *name)
{
  char other[4096];
  int is_journal = journal_is(found), is_there;
  if (is_journal)
    journal_growing(found, other);
  else
    journal_of(found, other);
  TRY(other_find(other, &is_there));
  if (!is_journal && !is_there && ranges_are(found)) return OK; /* output_claim() reports these */
  CHECK(is_journal || is_there, ERR_CREATE,
        "'%s' has lost its journal, '%s': restore that, or remove the file", found, other);
  if (!is_journal) return OK;
  if (!is_there) {
    unlink(found);
    return OK;
  }
  CHECK(!*name, ERR_CREATE,
        "'%s' and '%s' are the journals of two jobs: remove one, and its growing file", name,
        found);
  strcpy(name, found);
  return OK;
}

/* *entry <- the next entry of a folder; NULL: no more. */
static int folder_next(DIR *folder, const char *path, const struct dirent **entry)
{
  errno = 0;
  *entry = readdir(folder);
  CHECK(*entry || !errno, ERR_IO, "cannot list the files beside '%s': %s", path, strerror(errno));
  return OK;
}

static int folder_search(DIR *folder, const char *path, char *name)
{
  char found[4096];
  const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
  const struct dirent *entry;
  for (;;) {
    TRY(folder_next(folder, path, &entry));
    if (!entry) return OK;
    int is = temporary_is_kept(entry->d_name, last, JOURNAL_END) ||
             temporary_is_kept(entry->d_name, last, GROWING_END);
    if (!is) continue;
    int length = snprintf(found, sizeof found, "%.*s%s", (int)(last - path), path, entry->d_name);
    if (length < (int)sizeof found) TRY(found_take(found, name));
  }
}

int journal_find(const char *path, char *name)
{
  char folder[4096];
  *name = '\0';
  path_folder(path, folder);
  int step = watchdog_begin(ERR_IO, "looking for files beside", path);
  DIR *open_folder = opendir(folder);
  int error = open_folder ? 0 : errno;
  int status = open_folder ? folder_search(open_folder, path, name) : OK;
  if (open_folder) closedir(open_folder);
  watchdog_end(step);
  CHECK(!error || error == ENOENT, ERR_IO, "cannot list folder '%s': %s", folder, strerror(error));
  return status;
}

void journal_discard(const char *name)
{
  char growing[4096];
  journal_growing(name, growing);
  output_remove(growing);
  output_remove(name);
}
