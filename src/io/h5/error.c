/* SPDX-License-Identifier: BSD-3-Clause
 * HDF5 reports a failure as a stack of errors; the innermost one that says something becomes the
 * message of our status. */
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
  int is_system, is_memory;
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
  cause->is_memory = strstr(error->desc, "memory allocation failed") != NULL;
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
  last_cause = (struct cause){"", 0, 0};
  return H5Ewalk2(stack, H5E_WALK_UPWARD, cause_visit, &last_cause);
}

/* The cause of the last failure, which is forgotten here.  HDF5 loses the system error of some
 * failed reads, so errno is looked at too; of some failures it says nothing at all. */
static struct cause cause_fetch(int error)
{
  struct cause cause = last_cause;
  last_cause = (struct cause){"", 0, 0};
  if (!cause.is_system && (error == EIO || error == ESTALE)) {
    cause.is_system = 1;
    snprintf(cause.text, sizeof cause.text, "%s", strerror(error));
  }
  if (!cause.text[0]) strcpy(cause.text, "unknown cause");
  return cause;
}

void h5_cause(const char *format, ...)
{
  va_list args;
  last_cause = (struct cause){"", 0, 0};
  va_start(args, format);
  vsnprintf(last_cause.text, sizeof last_cause.text, format, args);
  va_end(args);
  errno = 0;
}

int h5_fail(int code, const char *file, int line, const char *format, ...)
{
  struct cause cause = cause_fetch(errno);
  char subject[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(subject, sizeof subject, format, args);
  va_end(args);
  if (cause.is_system && code == ERR_INPUT) code = ERR_IO;
  if (cause.is_memory) code = ERR_MEMORY;
  return status_fail(code, file, line, "%s: %s", subject, cause.text);
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
