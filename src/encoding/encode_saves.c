/* SPDX-License-Identifier: BSD-3-Clause
 * A save publishes a part.  The next file begins with this part (encode_files.h). */
#include "encoding/encode_saves.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "encoding/encode_ranks.h"
#include "io/inputs.h"
#include "job/checkpoint.h"
#include "job/summary.h"

static const double MOST =
    20; /* in units of --save-seconds: the largest pause; and the largest addition to the pause, for
         * opening the dictionary and the device again */

/* Add the counts of the runs before the save. */
static void counts_join(struct encode_saves *s, struct encode_result *r)
{
  for (int i = 0; i < ENCODE_PHASES; i++) {
    r->phases[i].calls += s->phases[i].calls;
    r->phases[i].seconds += s->phases[i].seconds;
    r->phases[i].work += s->phases[i].work;
  }
  r->counts.kernels += s->counts.kernels;
  r->counts.put += s->counts.put;
  r->counts.got += s->counts.got;
  for (int i = 0; i < SCREEN_PATHS; i++) r->filter.rows[i] += s->filter.rows[i];
  for (int i = 0; i < SCREEN_STAGES; i++) r->filter.seconds[i] += s->filter.seconds[i];
  r->filter.candidates += s->filter.candidates;
  r->filter.max = imax(r->filter.max, s->filter.max);
  r->rows += s->rows;
  memcpy(s->phases, r->phases, sizeof s->phases);
  s->counts = r->counts;
  s->filter = r->filter;
  s->rows = r->rows;
}

/* Publish the rows that are done, as a stop does. */
static int part_publish(void *self)
{
  const struct encode_saves *s = self;
  const struct job *job = &s->files->job;
  TRY(s->publish(s->self));
  if (job->summary) TRY(job_summary(job));
  summary_write(s->files->job.run);
  return OK;
}

/* After a save the rows, the dictionary and the device are opened again.  This time counts as time
 * of the save. */
static int save(struct encode_saves *s, struct encode_result *r)
{
  struct job *job = &s->files->job;
  double begun = log_seconds(), opening = r->phases[PHASE_OPEN].seconds / (s->count + 1);
  TRY(encode_files_join(s->files, r));
  TRY(job_finish(job, part_publish, s));
  encode_free(r);
  TRY(encode_files_continue(s->files));
  s->count++;
  double now = log_seconds();
  job->due = now + encode_saves_pause(job->save_seconds, now - begun + opening) +
             fmin(opening, MOST * job->save_seconds);
  return OK;
}

double encode_saves_pause(double save_seconds, double took)
{
  static const double WORK = 9; /* length of the pause, in units of `took` */
  return fmax(save_seconds, fmin(WORK * took, MOST * save_seconds));
}

/* May the job be stopped for saves?  The answer of rank 0 counts, which alone asks for saves. */
static int may_save(const struct encode_saves *s)
{
  const struct encode_files *f = s->files;
  const struct output_path *place = &f->job.place;
  if (f->job.run->comm.rank || f->common.grows) return 1;
  if (s->keeps_whole && input_is_there(place->file) &&
      !part_is_left(place->file, part_kind.name, 0)) {
    log_info("saves   none: '%s' is a complete result, and stays until the new one is complete",
             place->shown);
    return 0;
  }
  /* The rows of an earlier run are on the disk already: in its part, and copied to the new file. */
  struct supports_shape shape = encode_shape(f->task, f->n - f->job.done);
  int has_room = output_has_room(place->file, 2 * supports_bytes(&shape));
  if (!has_room)
    log_info("saves   none: the disk has no room both for a part of '%s' and for the file that the "
             "job goes on writing",
             place->shown);
  return has_room;
}

void encode_saves_begin(struct encode_saves *s)
{
  struct job *job = &s->files->job;
  s->files->task->stops = job_stops(job);
  job->stops_to_save = job->save_seconds > 0 && may_save(s);
  job_save_later(job);
}

int encode_saves_take(struct encode_saves *s, struct encode_result *result, int *more)
{
  struct job *job = &s->files->job;
  counts_join(s, result);
  *more = job->is_save_asked;
  job->is_save_asked = 0;
  return *more ? save(s, result) : OK;
}
