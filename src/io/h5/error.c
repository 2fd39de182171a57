/* SPDX-License-Identifier: BSD-3-Clause
 * HDF5 reports a failure as a stack of errors; the innermost one with a text becomes the message of
 * the status. */
#include "io/h5/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/h5/h5_impl.h"

/* Why this thread's last HDF5 call failed.  It is kept at once, because the next call empties
 * HDF5's own stack. */
static _Thread_local struct cause {
  char text[256];
  int is_system, is_memory, is_locked;
  hid_t kind; /* HDF5's number for the kind of error; set if there is a text */
} last_cause;

/* HDF5 calls this for each entry of the stack, the innermost first; an entry without a description
 * is skipped.  Of a system error only strerror's words are kept. */
static herr_t cause_visit(unsigned n, const H5E_error2_t *error, void *self)
{
  struct cause *cause = self;
  (void)n;
  if (cause->text[0] || !error->desc) return 0;
  const char *begin = strstr(error->desc, "error message = '");
  const char *end = begin ? strchr(begin + 17, '\'') : NULL;
  cause->is_system = begin != NULL;
  cause->is_memory = strstr(error->desc, "memory allocation failed") != NULL ||
                     strstr(error->desc, "null after H5MM_realloc") != NULL;
  cause->is_locked = strstr(error->desc, "unable to lock file") != NULL;
  cause->kind = error->min_num;
  if (end)
    snprintf(cause->text, sizeof cause->text, "%.*s", (int)(end - begin - 17), begin + 17);
  else
    snprintf(cause->text, sizeof cause->text, "%s", error->desc);
  return 0;
}

/* HDF5 calls this where it would otherwise print its stack. */
static herr_t cause_keep(hid_t stack, void *data)
{
  (void)data;
  last_cause = (struct cause){0};
  return H5Ewalk2(stack, H5E_WALK_UPWARD, cause_visit, &last_cause);
}

/* Did an allocation fail?  HDF5 reports this in several ways, and not at all if it cannot allocate
 * a stack of errors.  errno alone is not enough, since an earlier call may have set it. */
static int memory_lacks(const struct cause *cause, int error)
{
  if (cause->is_memory || cause->is_system || error != ENOMEM) return cause->is_memory;
  return !cause->text[0] || cause->kind == H5E_NOSPACE || cause->kind == H5E_CANTALLOC;
}

/* The cause of the last failure.  For some failed reads HDF5 does not report the system's error, so
 * errno is tested too.  For some failures it reports nothing. */
static struct cause cause_find(int error)
{
  struct cause cause = last_cause;
  cause.is_memory = memory_lacks(&cause, error);
  int is_lost = !cause.is_system && (error == EIO || error == ESTALE);
  if (is_lost) cause.is_system = 1;
  if (is_lost || (cause.is_memory && !cause.text[0]))
    snprintf(cause.text, sizeof cause.text, "%s", strerror(error));
  if (!cause.text[0]) strcpy(cause.text, "unknown cause");
  return cause;
}

static int code_of(const struct cause *cause, int code)
{
  if (cause->is_memory) return ERR_MEMORY;
  return cause->is_system && code == ERR_INPUT ? ERR_IO : code;
}

/* Does HDF5's message say that it does not know the version or the kind of a structure? */
static int is_newer(const char *text)
{
  static const char *const kinds[] = {"unknown message", "unknown data",   "unknown chunk",
                                      "unknown layout",  "unknown flag",   "unknown storage",
                                      "unknown class",   "bad layout type"};
  static const char *const verdicts[] = {"bad ", "wrong ", "Wrong ", "unknown ", "invalid "};
  for (int i = 0; i < LENGTH(kinds); i++)
    if (strstr(text, kinds[i])) return 1;
  for (int i = 0; i < LENGTH(verdicts) && strstr(text, "version"); i++)
    if (strstr(text, verdicts[i])) return 1;
  return 0;
}

/* Returns 1 if the cause need not be damage; advice[capacity] <- what the user can do about it. */
static int advice_find(const struct cause *cause, char *advice, size_t capacity)
{
  char version[32];
  const char *text = NULL;
  if (strstr(cause->text, "already open for write"))
    text = "a program is writing it, or did not close it: close it there, or if no program has it "
           "open, run h5clear -s FILE";
  else if (cause->is_locked && !strcmp(cause->text, strerror(EWOULDBLOCK)))
    text = "a program has it open for writing, and locked it: close it there, or if no program "
           "has it open, set HDF5_USE_FILE_LOCKING=FALSE";
  else if (cause->is_locked)
    text = "its file system refuses locks: set HDF5_USE_FILE_LOCKING=FALSE";
  if (text) {
    snprintf(advice, capacity, "%s", text);
    return 1;
  }
  h5_library(version, sizeof version);
  snprintf(
      advice, capacity,
      "a newer HDF5 than %s, which this program has, wrote it, or it is damaged: write it with "
      "h5py.File(NAME, 'w', libver=('earliest', 'v110')), or there h5repack --high=2 OLD NEW",
      version);
  return is_newer(cause->text);
}

int h5_fail_has_advice(void)
{
  char advice[512];
  struct cause cause = cause_find(errno);
  return advice_find(&cause, advice, sizeof advice);
}

int h5_fail_code(int code)
{
  struct cause cause = cause_find(errno);
  return code_of(&cause, code);
}

void h5_cause(const char *format, ...)
{
  va_list args;
  last_cause = (struct cause){0};
  va_start(args, format);
  vsnprintf(last_cause.text, sizeof last_cause.text, format, args);
  va_end(args);
  errno = 0;
}

int h5_fail(int code, const char *file, int line, const char *format, ...)
{
  struct cause cause = cause_find(errno);
  last_cause = (struct cause){0};
  char subject[1024], advice[512];
  va_list args;
  va_start(args, format);
  vsnprintf(subject, sizeof subject, format, args);
  va_end(args);
  code = code_of(&cause, code);
  if (code == ERR_MEMORY || !advice_find(&cause, advice, sizeof advice))
    return status_fail(code, file, line, "%s: %s", subject, cause.text);
  return status_fail(code, file, line, "%s: %s (%s)", subject, advice, cause.text);
}

/* A thread-safe build of HDF5 has one error stack, and one way to print it, for each thread. */
int h5_begin(void)
{
  static int is_set_up;
  static _Thread_local int has_begun;
  if (has_begun) return OK;
  if (!is_set_up) H5dont_atexit();
  is_set_up = 1;
  CHECK(H5open() >= 0 && H5Eset_auto2(H5E_DEFAULT, cause_keep, NULL) >= 0, ERR_MEMORY,
        "cannot start HDF5");
  has_begun = 1;
  return OK;
}
