/* SPDX-License-Identifier: BSD-3-Clause
 * Errors: every function that can fail returns one of these codes; each thread keeps the message.
 *
 * Floor: base.
 *
 * Codes are the program's exit codes (doc/design.md).  A message is lower case, names the cause
 * first, puts its subject in single quotes, and has numbers: row 17 has 33 entries, top-s is 32. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stddef.h>

enum status {
  OK = 0,
  /* the command ran, but its answer is no: files differ, or a check with --strict failed */
  ERR_ANSWER = 1,
  ERR_USAGE = 2,     /* option or deck */
  ERR_INPUT = 65,    /* content of an input */
  ERR_DEVICE = 69,   /* required device or instruction set not available */
  ERR_INTERNAL = 70, /* a broken invariant of this program */
  ERR_MEMORY = 71,   /* out of memory, or of threads */
  ERR_CREATE = 73,   /* output cannot be created */
  ERR_IO = 74,       /* open, read or write failed, or took longer than the deadline */
  ERR_STOPPED = 75,  /* no failure: the job was asked to stop, and can be resumed */
  ERR_COMM = 76,     /* communication failure or deadline */
};

/* The meanings of the codes, as --help prints them. */
extern const char status_codes_text[];

/* Record the message, unless one was recorded since status_clear(); returns code. */
int status_fail(int code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Add one line to the trace, which --verbose shows; returns code. */
int status_pass(int code, const char *file, int line);

/* This thread's message and trace since status_clear(); empty if nothing failed. */
const char *status_message(void);
const char *status_trace(void);
void status_clear(void);
/* text[capacity] <- the message, "" if there is none.  Then message and trace are cleared, so that
 * the next failure is recorded; its message may contain the text. */
void status_take(char *text, size_t capacity);

/* Take over the failure of another thread or rank: its code and message replace this thread's. */
int status_set(int code, const char *message);

/* If a call fails, TRY leaves the function with the code of the call.  FAIL leaves the function
 * with a new failure.  CHECK does the same if a condition does not hold. */
#define TRY(call)                                                                                  \
  do {                                                                                             \
    int try_ = (call);                                                                             \
    if (try_) return status_pass(try_, __FILE__, __LINE__);                                        \
  } while (0)
#define FAIL(code, ...) return status_fail((code), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond, code, ...)                                                                     \
  do {                                                                                             \
    if (!(cond)) FAIL(code, __VA_ARGS__);                                                          \
  } while (0)
/* Advice about a file whose parts contradict each other: the end of a message. */
#define ANEW "; copy the file again, or make it anew"
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

#endif
