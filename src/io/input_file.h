/* SPDX-License-Identifier: BSD-3-Clause
 * The input files that this process has open: what they were when they were opened, and whether
 * they still are; and what ranks compare of them before work begins.
 *
 * Floor: io.  Not collective.  Any thread may call it; input_file_read(), input_file_failed() and
 * input_file_array() are safe on NULL, a file that is written.
 *
 * h5_open() and flat_open() note every file here, so no reader can forget to.  result_publish()
 * refuses to publish while a file was not compared among ranks, or was read since it was last
 * looked at. */
#ifndef IO_INPUT_FILE_H
#define IO_INPUT_FILE_H

#include "base/file_facts.h"
#include "base/types.h"

struct input_file {
  const char *path; /* borrowed */
  int descriptor;   /* borrowed */
  struct file_facts facts;
  uint64_t shapes;         /* a hash of the names, types and shapes of arrays opened so far */
  _Atomic int unseen;      /* read since it was last looked at */
  int compared;            /* with those of the other ranks */
  struct input_file *next; /* opened after this one */
};

/* Note a file that was opened, with its facts from before anything of it was read.  path and
 * descriptor live until input_file_end().  ERR_IO: it is not that file any more. */
int input_file_begin(struct input_file **input, const char *path, int descriptor,
                     const struct file_facts *facts);
/* Look a last time, unless that was done since the last read, and forget the file; safe on NULL.
 * ERR_IO: it changed. */
int input_file_end(struct input_file **input);

/* An array of the file was opened. */
void input_file_array(struct input_file *input, const char *object, int type, int rank,
                      const gidx *shape);
/* Something of it will be read. */
void input_file_read(struct input_file *input);
/* A read failed with this status: where that blames the content, ERR_INPUT, and the file changed,
 * ERR_IO, which says so; else the status. */
int input_file_failed(struct input_file *input, int status);

/* Look at all files that were read since the last time.  ERR_IO: one changed. */
int input_files_recheck(void);
/* The same for all files that were read since the last look: what was read may be wrong. */
int input_files_failed(int status);
/* ERR_INTERNAL: a file was not compared, or was read since it was last looked at. */
int input_files_settled(void);

/* What ranks compare of a file: 64-bit numbers alone.  Inode and device differ between copies on
 * nodes and are left out, and so are parts of a second, which copying may lose. */
enum { INPUT_END_BYTES = 1 << 16 };
struct input_mark {
  int64_t size, seconds;
  uint64_t shapes, head, tail; /* hashes; of the first and the last INPUT_END_BYTES */
};
/* *marks[*count] <- those of all files, in the order in which they were opened; the caller frees
 * them, also when this fails.  ERR_IO: a file cannot be read. */
int input_files_mark(struct input_mark **marks, gidx *count);
/* The same of one file. */
int input_file_mark(const struct input_file *f, struct input_mark *mark);
/* Do two marks differ?  Then text[capacity] <- in what: "1000 bytes, not 2000" */
int input_mark_differs(const struct input_mark *mine, const struct input_mark *other, char *text,
                       size_t capacity);
/* Do other[count] mark other files than mine[count]?  Then *path <- the first that differs, and
 * text[capacity] <- in what. */
int input_marks_differ(const struct input_mark *mine, const struct input_mark *other, gidx count,
                       char *text, size_t capacity, const char **path);
/* All files that are open were compared; this one was. */
void input_files_compared(void);
void input_file_compared(struct input_file *f);

#endif
