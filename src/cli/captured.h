/* SPDX-License-Identifier: BSD-3-Clause
 * Rows from --rows, or rows that attention gives for the inputs of --capture.
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

struct captured {
  struct capture_input in;
  struct device device;
  struct harvest_reader *reader;
};
/* Open the device that harvests a capture and does the work of options.  harvest_device_check()
 * explains queries and beside.  `auto` takes a CPU when the GPU cannot take the work, and the log
 * says why.  Not collective. */
int captured_device_open(struct device *device, const struct capture_source *capture, idx queries,
                         gidx beside, const struct device_options *options);
/* text[capacity] <- what a result says of the device: its kind, and the name of a GPU. */
void captured_device_name(const struct device *device, char *text, size_t capacity);
/* ERR_USAGE unless exactly one of --rows and --capture is given; the other is NULL. */
int rows_or_capture_check(const char *name, const char *capture);
/* Open the rows of the option that is given.  Call captured_close() after rows_input_close(), also
 * when this fails.  Collective like rows_input_open(). */
int rows_or_capture_open(struct rows_input *rows, struct captured *c, struct comm *ranks,
                         const char *name, const char *capture,
                         const struct device_options *device);
/* Warn if the rounding of scores may be visible in the rows of a capture (N.27).  The terms of a
 * score are bounded by the product of the norms of its query and key.  Collective. */
int captured_report(struct comm *c, const struct capture_input *in);
void captured_close(struct captured *c);

#endif
