/* SPDX-License-Identifier: BSD-3-Clause
 * Rows of --rows, or those that --capture gives by attention.
 *
 * Floor: cli. */
#ifndef CLI_CAPTURED_H
#define CLI_CAPTURED_H

#include "cli/command.h"
#include "harvest/harvest.h"
#include "io/capture.h"
#include "io/rows.h"

/* The row of --capture of a command that takes --rows too, whose value is at an offset. */
#define CAPTURE_OPTION(offset)                                                                     \
  {                                                                                                \
    "capture", OPTION_TEXT, offset, NULL, 0, 0, NULL, "FILE",                                      \
        "in place of --rows: a file of queries, keys and values of attention; rows are "           \
        "computed from it, as by `sagitta harvest`, every time they are read",                     \
        .effect = OPTION_BITS, .flags = OPTION_INPUT                                               \
  }

struct captured {
  struct capture_input in;
  struct device device;
  struct harvest_reader *reader;
};
/* Open the device that harvests a capture, and has the work of the options, so many queries at a
 * time and bytes beside (harvest_device_check()).  `auto` takes a CPU for what the GPU cannot take;
 * the log says why.  Not collective. */
int captured_device_open(struct device *device, const struct capture_source *capture, idx queries,
                         gidx beside, const struct device_options *options);
/* text[capacity] <- what a result says of the device: its kind, and a GPU's name. */
void captured_device_name(const struct device *device, char *text, size_t capacity);
/* ERR_USAGE unless one of the two options is given, and the other NULL. */
int rows_or_capture_check(const char *name, const char *capture);
/* Open the rows of the one that is given.  captured_close() follows rows_input_close(), also when
 * this fails.  Collective as rows_input_open() is. */
int rows_or_capture_open(struct rows_input *rows, struct captured *c, struct comm *ranks,
                         const char *name, const char *capture,
                         const struct device_options *device);
/* Warn where the rounding of scores may be seen in what was computed of a capture (N.27): terms of
 * a score are at most the norms of its query and key in size.  Collective. */
int captured_report(struct comm *c, const struct capture_input *in);
void captured_close(struct captured *c);

#endif
