/* SPDX-License-Identifier: BSD-3-Clause
 * Turn HDF5's errors into a status, and initialise HDF5 in a thread.
 *
 * Floor: io; included by src/io/h5/ and tests only. */
#ifndef IO_H5_ERROR_H
#define IO_H5_ERROR_H

#include "base/status.h"

/* If an HDF5 call failed, return the code, with a message that ends with HDF5's innermost error.  A
 * system error turns ERR_INPUT into ERR_IO, a failed allocation turns any code into ERR_MEMORY. */
#define TRY_H5(call, code, ...)                                                                    \
  do {                                                                                             \
    if ((call) < 0) return h5_fail((code), __FILE__, __LINE__, __VA_ARGS__);                       \
  } while (0)
int h5_fail(int code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The code that h5_fail() would give now. */
int h5_fail_code(int code);
/* Would the message of h5_fail() now include advice?  It does if the file is newer than this
 * library, is being written, or cannot be locked. */
int h5_fail_has_advice(void);

/* Set the cause that h5_fail() gives for a failure of this thread that HDF5 did not report. */
void h5_cause(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Each thread calls this before any function of HDF5.  It turns off HDF5's printing of errors, and
 * its exit handler, which crashes after a failed close. */
int h5_begin(void);

#endif
