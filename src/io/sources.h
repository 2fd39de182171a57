/* SPDX-License-Identifier: BSD-3-Clause
 * Where the score of a row on an atom comes from, for pages: the list of its pair in
 * attribution.h5, and the tokens of the capture's positions where it has some.
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
  const char *folder;      /* whose attribution.h5 is taken where none is named, if it is there */
  const char *attribution; /* NULL: not named */
  const char *capture; /* NULL: that of the run which wrote attribution.h5, if it is still there */
};

/* Open what is named, or what is there.  ERR_INPUT: what is named is of other supports or another
 * capture; of what is there a warning says so, and it stays closed.  sources_close() follows also
 * when this fails. */
int sources_open(struct sources *s, const struct sources_names *names,
                 const struct support_source *of);
/* The same, once the hash of the supports is known; 0: it is not. */
int sources_check(struct sources *s, const struct sources_names *names, uint64_t supports);
int sources_there(const struct sources *s);
void sources_close(struct sources *s);

/* Print the token of a row's own position in brackets, and at most so many on each side. */
int sources_context(struct sources *s, const struct tokens *words, gidx row, int around, FILE *out);
/* Print the `count` largest contributions to a row's pair, a line each, or tell them. */
struct source_list {
  gidx row, pair;
  idx count;
  const struct tokens *words;
};
int sources_print(struct sources *s, const struct source_list *list, FILE *out);
struct json;
int sources_json(struct sources *s, const struct source_list *list, struct json *j);

#endif
