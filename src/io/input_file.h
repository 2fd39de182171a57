/* SPDX-License-Identifier: BSD-3-Clause
 * The input files that this process has open.  Their size, time and inode are noted when they are
 * opened, so that a later change is found.  Before work begins, ranks compare marks of their files.
 *
 * Floor: io.  Not collective.  Any thread may call these functions, except input_files_mark() and
 * input_marks_differ().  input_file_read(), input_file_failed() and input_file_array() accept NULL,
 * which stands for a file that is being written.
 *
 * h5_open() and flat_open() note every file here, so no reader can forget to.  result_publish()
 * refuses to publish if a file was not compared among ranks, or was read after its last check for
 * changes. */
#ifndef IO_INPUT_FILE_H
#define IO_INPUT_FILE_H

#include "base/file_facts.h"
#include "base/types.h"

struct input_file {
  const char *path; /* borrowed */
  int descriptor;   /* borrowed */
  struct file_facts facts;
  uint64_t shapes;         /* a hash of the names, types and shapes of arrays opened so far */
  _Atomic int unseen;      /* read since the last check for changes */
  int compared;            /* its mark was compared with those of the other ranks */
  struct input_file *next; /* the file that was opened after this one */
};

/* Note a file that was opened.  facts were taken before the first read.  path and descriptor must
 * stay valid until input_file_end().  ERR_IO: the path leads to another file by now. */
int input_file_begin(struct input_file **input, const char *path, int descriptor,
                     const struct file_facts *facts);
/* Check for changes once more, unless nothing was read since the last check, and forget the file;
 * safe on NULL.  ERR_IO: it changed. */
int input_file_end(struct input_file **input);

/* Note that an array of the file was opened. */
void input_file_array(struct input_file *input, const char *object, int type, int rank,
                      const gidx *shape);
/* Note that bytes of the file will be read. */
void input_file_read(struct input_file *input);
/* Call this after a read failed with `status`.  Returns ERR_IO if status is ERR_INPUT and the file
 * changed, since then its content is not to blame; otherwise returns status. */
int input_file_failed(struct input_file *input, int status);

/* Check for changes in all files that were read since their last check.  ERR_IO: one changed. */
int input_files_recheck(void);
/* As input_file_failed(), for all files that were read since their last check. */
int input_files_failed(int status);
/* ERR_INTERNAL: a file was not compared among ranks, or was read since its last check. */
int input_files_settled(void);

/* The data about a file that ranks compare; all members have 64 bits.  Inode and device are left
 * out, since nodes may have their own copies.  Fractions of a second are left out, since copying
 * may lose them. */
enum { INPUT_END_BYTES = 1 << 16 };
struct input_mark {
  int64_t size, seconds;
  uint64_t shapes, head, tail; /* hashes; head and tail: of the first and the last
                                * INPUT_END_BYTES */
};
/* *marks[*count] <- the marks of all files in the order in which they were opened; the caller frees
 * *marks, also after a failure.  ERR_IO: a file cannot be read. */
int input_files_mark(struct input_mark **marks, gidx *count);
/* The same for one file. */
int input_file_mark(const struct input_file *f, struct input_mark *mark);
/* Do two marks differ?  If so, text[capacity] <- the difference, such as "1000 bytes, not 2000". */
int input_mark_differs(const struct input_mark *mine, const struct input_mark *other, char *text,
                       size_t capacity);
/* Do the marks other[count] differ from mine[count]?  If so, *path <- the first file that differs,
 * and text[capacity] <- the difference. */
int input_marks_differ(const struct input_mark *mine, const struct input_mark *other, gidx count,
                       char *text, size_t capacity, const char **path);
/* Note that all open files, or this one file, were compared among ranks. */
void input_files_compared(void);
void input_file_compared(struct input_file *f);

#endif
