/* SPDX-License-Identifier: BSD-3-Clause
 * The inputs are loaded as for a fresh run and compared, by the hashes of their contents, with what
 * dictionary.h5 says that it was begun with; then its frames take their place.  supports.h5 is used
 * if it names this dictionary and holds what the dictionary names. */
#include "cli/refit_resume.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "job/agreement.h"

void refit_start_note(struct fit_start *start, const struct fit_inputs *inputs,
                      const struct refit_state *state)
{
  start->rounds = inputs->supports.rounds;
  start->top_s = inputs->supports.top_s > 0 ? inputs->supports.top_s : 0;
  start->rho = inputs->supports.rho;
  start->inputs = state->inputs;
}

int refit_identity_fill(struct identity_text *t, const struct fit_inputs *in,
                        const struct refit_state *state)
{
  char rho[32], rounds[32];
  snprintf(rho, sizeof rho, "%.17g", in->supports.rho);
  snprintf(rounds, sizeof rounds, "%d", in->supports.rounds);
  TRY(identity_text_contents(t, &state->inputs));
  TRY(identity_text_hash(t, "mean_hash", mean_hash(in->mean, state->p)));
  TRY(identity_text_input(t, "codes_sign", in->supports.nonnegative ? "nonnegative" : "any"));
  TRY(identity_text_input(t, "supports_rho", rho));
  return identity_text_input(t, "supports_rounds", rounds);
}

/* Open what the earlier run left, and see whether the two files name each other. */
static int previous_open(struct refit_previous *previous, const struct refit_files *files)
{
  const struct identity *wanted = &files->facts.contents;
  const struct supports_input *s = &previous->supports;
  TRY(dictionary_input_open(&previous->dictionary, files->job.place.shown));
  if (!files->has_supports) return OK;
  int status = supports_input_open(&previous->supports, files->job.more[REFIT_SUPPORTS].shown);
  if (status == ERR_INPUT) { /* it may be of a newer program, and is not replaced */
    char why[1024];
    status_take(why, sizeof why);
    FAIL(ERR_INPUT, "%s: remove it, and it is made again", why);
  }
  TRY(status);
  previous->has_supports =
      s->sweeps == files->facts.sweeps && s->inputs.rows == files->facts.start.inputs.rows &&
      s->inputs.dictionary == wanted->dictionary && s->contents.supports == wanted->supports &&
      s->contents.codes == wanted->codes;
  return OK;
}

static int contents_check(const char *file, const struct identity *wanted,
                          const struct identity *found)
{
  CHECK(found->dictionary == wanted->dictionary, ERR_INPUT,
        "'%s' is damaged: its atoms are not those that refit wrote", file);
  CHECK(!found->supports || (found->supports == wanted->supports && found->codes == wanted->codes),
        ERR_INPUT, "the supports beside '%s' are damaged: remove them, and they are made again",
        file);
  return OK;
}

int refit_resume(struct refit_previous *previous, const struct refit_files *files,
                 struct refit_state *state)
{
  struct comm *c = &files->job.run->comm;
  struct identity found;
  TRY(comm_agree(c, c->rank ? OK : refit_files_check(files)));
  TRY(inputs_agree(c, previous_open(previous, files)));
  TRY(comm_broadcast(c, &previous->has_supports, 1, sizeof previous->has_supports));
  if (files->has_supports && !previous->has_supports)
    log_warn("'%s' is not used: the supports of sweep %lld of '%s' are made again",
             files->job.more[REFIT_SUPPORTS].shown, (long long)files->facts.sweeps,
             files->job.place.shown);
  TRY(refit_state_replace(state, &previous->dictionary.source,
                          previous->has_supports ? &previous->supports.source : NULL, &found));
  return comm_agree(c, contents_check(files->job.place.shown, &files->facts.contents, &found));
}

void refit_previous_close(struct refit_previous *previous)
{
  dictionary_input_close(&previous->dictionary);
  supports_input_close(&previous->supports);
  *previous = (struct refit_previous){0};
}

int refit_contents_check(const struct refit_files *files, const struct refit_state *state)
{
  const struct identity *was = &files->facts.contents, *is = &state->contents;
  CHECK(was->supports == is->supports && was->codes == is->codes, ERR_INPUT,
        "the supports made again from '%s' are not those that it names: codes_hash %016llx, not "
        "%016llx",
        files->job.place.shown, (unsigned long long)is->codes, (unsigned long long)was->codes);
  return OK;
}

int refit_classes_check(struct refit_files *files, const struct classes *classes, const char *name)
{
  struct fit_start *start = &files->facts.start;
  uint64_t hash = classes_hash(classes->color, classes->k);
  if (start->reroute) return OK; /* they change from sweep to sweep */
  if (!files->facts.sweeps) start->inputs.classes = hash;
  CHECK(start->inputs.classes == hash, ERR_INPUT,
        "'%s' was begun with other classes than '%s': classes_hash %016llx, not %016llx; resume "
        "with the same%s",
        files->job.place.shown, name ? name : "(N.6)", (unsigned long long)start->inputs.classes,
        (unsigned long long)hash, sweep_files_advice(&files->sweep));
  return OK;
}
