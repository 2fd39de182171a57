/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of a command: read from --rows, or computed by attention from the queries, keys and
 * values of --capture.
 *
 * Floor: cli. */
#ifndef CLI_CAPTURED_H
#define CLI_CAPTURED_H

#include "cli/command.h"
#include "harvest/harvest.h"
#include "io/capture.h"
#include "io/rows.h"

/* The option row of --capture, for a command that also takes --rows; its value is stored at
 * offset. */
#define CAPTURE_OPTION(offset)                                                                     \
  {                                                                                                \
    "capture", OPTION_TEXT, offset, NULL, 0, 0, NULL, "FILE",                                      \
        "in place of --rows: a file of queries, keys and values of attention; each time rows "     \
        "are read, they are computed from it as `sagitta harvest` computes them",                  \
        .effect = OPTION_BITS, .flags = OPTION_INPUT                                               \
  }

/* An open capture, the device that computes its rows, and their reader; zeros without --capture. */
struct captured {
  struct capture_input in;
  struct device device;
  struct harvest_reader *reader;
};
/* Open the device of a job that computes the rows of a capture.  options->work: the multiply-adds
 * of its other work.  queries, beside: as for harvest_device_check().  If the kind is `auto` and
 * the GPU cannot compute the rows, the CPU is opened, and the log says why.  Not collective. */
int captured_device_open(struct device *device, const struct capture_source *capture, idx queries,
                         gidx beside, const struct device_options *options);
/* text[capacity] <- the device as results name it: "cpu", or "cuda" and the name of the GPU. */
void captured_device_name(const struct device *device, char *text, size_t capacity);
/* name, capture: the values of --rows and --capture; NULL: not given.  ERR_USAGE unless exactly one
 * is given. */
int rows_or_capture_check(const char *name, const char *capture);
/* Open the rows of the option that is given.  *c must be zeros.  Call captured_close() after
 * rows_input_close(), also if this fails.  Collective if rows_input_open() is. */
int rows_or_capture_open(struct rows_input *rows, struct captured *c, struct comm *ranks,
                         const char *name, const char *capture,
                         const struct device_options *device);
/* Warn if rounding errors of scores may be visible in the rows of a capture (N.27).  The product of
 * the norms of query and key bounds the sum of |terms| of a score.  Uses the largest norms that the
 * ranks have read so far, so call it after the rows were computed.  Collective. */
int captured_report(struct comm *c, const struct capture_input *in);
void captured_close(struct captured *c);

#endif
