/* SPDX-License-Identifier: BSD-3-Clause
 * These functions show which positions contribute to the score of a row and an atom, for `inspect`.
 * attribution.h5 lists them, and the capture has the tokens of its positions, if any.
 *
 * Floor: io.  Not collective. */
#ifndef IO_SOURCES_H
#define IO_SOURCES_H

#include <stdio.h>

#include "io/attribution.h"
#include "io/capture.h"
#include "io/tokens.h"
#include "model/supports.h"

struct sources {
  struct attribution_input file;
  struct capture_input capture;
  int has_capture, has_tokens;
};
struct sources_names {
  const char *folder;      /* its attribution.h5 is used if `attribution` is NULL and the file
                            * exists */
  const char *attribution; /* NULL: not named */
  const char *capture;     /* NULL: the capture of the run that wrote attribution.h5, if it still
                            * exists */
};

/* Open the named files, or the files that exist by default.  ERR_INPUT: a named file belongs to
 * other supports or another capture, or a capture is named and there is no attribution.h5.  If such
 * a file was not named, there is only a warning, and the file is not opened.  Call sources_close()
 * also after a failure. */
int sources_open(struct sources *s, const struct sources_names *names,
                 const struct support_source *of);
/* Check once more that attribution.h5 belongs to these supports, by their hash. */
int sources_check(struct sources *s, const struct sources_names *names, uint64_t supports);
int sources_there(const struct sources *s);
void sources_close(struct sources *s);

/* Print the token of a row's own position in brackets, with at most `around` tokens on each
 * side. */
int sources_context(struct sources *s, const struct tokens *words, gidx row, int around, FILE *out);
/* Print the `count` largest contributions to a pair, one per line, or add them to JSON. */
struct source_list {
  gidx row, pair;
  idx count;
  const struct tokens *words;
};
int sources_print(struct sources *s, const struct source_list *list, FILE *out);
struct json;
int sources_json(struct sources *s, const struct source_list *list, struct json *j);

#endif
