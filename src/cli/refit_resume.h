/* SPDX-License-Identifier: BSD-3-Clause
 * Going on where an earlier refit ended: whether it is the same run, and whether the supports that
 * it left belong to its dictionary.
 *
 * Floor: cli. */
#ifndef CLI_REFIT_RESUME_H
#define CLI_REFIT_RESUME_H

#include "cli/fit_inputs.h"
#include "cli/refit_files.h"

/* What the earlier run left. */
struct refit_previous {
  struct dictionary_input dictionary;
  struct supports_input supports;
  int has_supports; /* those of the dictionary's sweep */
};

/* Let a state that was loaded from the inputs be that of the earlier run's last sweep.  Where
 * previous->has_supports is 0 its supports are still those of the inputs, and have to be made again
 * from the frames.  ERR_INPUT names what is not as the earlier run had it.  Collective. */
int refit_resume(struct refit_previous *previous, const struct refit_files *files,
                 struct refit_state *state);
/* What a job depends on beside its options, once inputs are loaded; refit_resume() compares it. */
int refit_identity_fill(struct identity_text *t, const struct fit_inputs *inputs,
                        const struct refit_state *state);
void refit_previous_close(struct refit_previous *previous);

/* What a run begins with, as far as it is known after the inputs were loaded: all but classes and
 * options. */
void refit_start_note(struct fit_start *start, const struct fit_inputs *inputs,
                      const struct refit_state *state);

/* ERR_INPUT when the supports and codes of the state are not those that dictionary.h5 names, though
 * they were made again from it. */
int refit_contents_check(const struct refit_files *files, const struct refit_state *state);

/* The classes of the first sweep to come: noted by a fresh run, checked by a resumed one. */
int refit_classes_check(struct refit_files *files, const struct classes *classes, const char *name);

#endif
