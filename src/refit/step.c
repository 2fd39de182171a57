/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a batch: owners solve and propose frames, ranks try them on their rows, owners
 * decide.  Rejected members are solved again with larger ridges.  A round takes three exchanges. */
#include "refit/step.h"

#include <math.h>
#include <string.h>

#include "base/sums.h"
#include "base/status.h"
#include "base/team.h"
#include "device/arrow.h"
#include "device/refit.h"
#include "model/step.h"
#include "refit/frames.h"

enum verdict { PENDING, ACCEPTED, GIVEN_UP };

/* An owner's verdict on a member, and the frame that it proposes. */
struct proposal {
  idx verdict, is_tried; /* is_tried: a frame is proposed */
  struct atom_step step;
  real frame[]; /* [d][p] */
};

struct steps {
  struct refit_state *f;
  const struct atom_batch *b;
  const struct batch_systems *a;
  struct phase *solving, *moving;
  struct arena arena;
  struct arrow_item *item, *again; /* [mine] item: all own systems; again: the systems that are
                                    * solved now */
  idx *solved;                     /* [mine] own member of again[i] */
  size_t unit;                     /* bytes of a proposal */
  char *own, *all;                 /* [mine], [count] proposals */
  idx *own_verdict, *verdict;      /* [mine], [count] */
  real *codes, *objective;         /* [own_rows][d], [own_rows] with the proposed frame */
  struct rows_received received;
  real *gathered;          /* [owner_rows] objectives */
  struct move_item *moves; /* [segments] */
};

static int steps_alloc(struct steps *s)
{
  const struct atom_batch *b = s->b;
  struct arena *a = &s->arena;
  gidx frame = (gidx)s->f->d * s->f->p, rows = b->own_rows, whole = b->owner_rows;
  TRY(arena_alloc(a, &s->item, b->mine, sizeof *s->item));
  TRY(arena_alloc(a, &s->again, b->mine, sizeof *s->again));
  TRY(arena_alloc(a, &s->solved, b->mine, sizeof *s->solved));
  s->unit = sizeof(struct proposal) + (size_t)frame * sizeof(real);
  TRY(arena_alloc(a, &s->own, b->mine, s->unit));
  TRY(arena_alloc(a, &s->all, b->count, s->unit));
  TRY(arena_alloc(a, &s->own_verdict, b->mine, sizeof(idx)));
  TRY(arena_alloc(a, &s->verdict, b->count, sizeof(idx)));
  TRY(arena_alloc(a, &s->codes, rows * s->f->d, sizeof(real)));
  TRY(arena_alloc(a, &s->objective, rows, sizeof(real)));
  TRY(arena_alloc(a, &s->gathered, whole, sizeof(real)));
  TRY(arena_alloc(a, &s->moves, b->segments, sizeof *s->moves));
  for (idx i = 0; i < b->mine; i++) {
    struct arrow_item item = {.system = batch_systems_shape(s->a, s->f, b, i)};
    TRY(arena_alloc(a, &item.step_t, item.system.n * item.system.d, sizeof(real)));
    TRY(arena_alloc(a, &item.step_b, item.system.k, sizeof(real)));
    if (a->is_dry) continue;
    item.system = s->a->system[i];
    s->item[i] = item;
  }
  return OK;
}

int atom_batch_step_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                          gidx *bytes)
{
  struct batch_systems a = {.q = q};
  struct steps s = {.f = (struct refit_state *)f, .b = b, .a = &a, .arena.is_dry = 1};
  TRY(steps_alloc(&s));
  TRY(atom_batch_rows_bytes(b, f, 1, bytes)); /* for the objectives */
  *bytes += (gidx)s.arena.bytes;
  return OK;
}

static struct proposal *own_proposal(const struct steps *s, gidx i)
{
  return (struct proposal *)(s->own + (size_t)i * s->unit);
}

static struct proposal *proposal_of(const struct steps *s, gidx member)
{
  return (struct proposal *)(s->all + (size_t)member * s->unit);
}

/* Solve the systems of own members that are pending. */
static int pending_solve(struct steps *s)
{
  struct arrow_job job = {.options = {.escalate = 1}, .items = s->again};
  for (idx i = 0; i < s->b->mine; i++) {
    if (s->own_verdict[i] != PENDING) continue;
    s->solved[job.count] = i;
    s->again[job.count++] = s->item[i];
  }
  TRY(device_arrow(&s->f->device, &job));
  for (gidx j = 0; j < job.count; j++) s->item[s->solved[j]].outcome = s->again[j].outcome;
  return OK;
}

/* Propose a frame for own member i, if it is pending and its system was solved. */
static void frame_propose(void *self, gidx i)
{
  struct steps *s = self;
  const struct refit_state *f = s->f;
  const struct arrow_outcome *o = &s->item[i].outcome;
  struct proposal *to = own_proposal(s, i);
  idx member = s->b->mine_first + (idx)i;
  if (s->own_verdict[i] == PENDING && o->status != ARROW_OK) s->own_verdict[i] = GIVEN_UP;
  to->verdict = s->own_verdict[i];
  to->step = (struct atom_step){.status = o->status,
                                .retries = o->retries,
                                .ridge = o->ridge_t,
                                .pair = o->pair,
                                .log_det = o->log_det};
  /* If the new vectors are linearly dependent there is no frame to try; that counts as a step that
   * makes the rows worse. */
  to->is_tried =
      to->verdict == PENDING && step_frame(f->frames + (gidx)s->b->atom[member] * f->d * f->p,
                                           s->a->e + (gidx)member * s->a->q * f->p, f->d,
                                           s->a->kept[member], f->p, s->item[i].step_b, to->frame);
}

/* List the moves to try, or with accepted = 1 only the accepted moves.  Returns their number. */
static gidx moves_list(struct steps *s, int accepted)
{
  const struct refit_state *f = s->f;
  const struct atom_batch *b = s->b;
  gidx frame = (gidx)f->d * f->p, count = 0;
  for (gidx g = 0; g < b->segments; g++) {
    const struct segment *segment = b->segment + g;
    idx m = segment->member;
    if (!proposal_of(s, m)->is_tried || (accepted && s->verdict[m] != ACCEPTED)) continue;
    s->moves[count++] = (struct move_item){.rows = b->rows + segment->at,
                                           .n = segment->n,
                                           .u_old = f->frames + b->atom[m] * frame,
                                           .u_new = proposal_of(s, m)->frame,
                                           .t_old = b->codes + segment->at * f->d,
                                           .t_new = s->codes + segment->at * f->d,
                                           .objective = s->objective + segment->at};
  }
  return count;
}

static struct moves_job moves_job(struct steps *s, int accepted)
{
  const struct refit_state *f = s->f;
  return (struct moves_job){
      .d = f->d,
      .p = f->p,
      .rho = f->rho,
      .nonnegative = f->task->nonnegative,
      .residual = f->residual,
      .items = s->moves,
      .count = moves_list(s, accepted),
  };
}

/* Accept own members whose rows did not become worse; set up the next try of the others. */
static void own_decide(struct steps *s)
{
  const struct atom_batch *b = s->b;
  for (idx i = 0; i < b->mine; i++) {
    struct lane_sum after = {0};
    if (s->own_verdict[i] != PENDING) continue;
    for (gidx row = b->whole[i]; row < b->whole[i + 1]; row++)
      lane_sum_fma(&after, row - b->whole[i], s->gathered[row], 1);
    if (own_proposal(s, i)->is_tried && lane_sum_total(&after) <= s->a->before[i])
      s->own_verdict[i] = ACCEPTED;
    else if (!step_retry(&s->item[i].system, &s->item[i].outcome, &s->item[i].start))
      s->own_verdict[i] = GIVEN_UP;
  }
}

/* Make the accepted moves: residuals and codes. */
static int accepted_keep(struct steps *s)
{
  struct refit_state *f = s->f;
  const struct atom_batch *b = s->b;
  struct moves_job job = moves_job(s, 1);
  size_t code = (size_t)f->d * sizeof(real);
  TRY(device_moves_keep(&f->device, &job));
  for (idx m = 0; m < b->count; m++) {
    if (!proposal_of(s, m)->is_tried || s->verdict[m] != ACCEPTED) continue;
    for (gidx i = b->start[m]; i < b->start[m + 1]; i++)
      memcpy(f->codes + b->entry[i] * f->d, s->codes + i * f->d, code);
  }
  return OK;
}

static int frames_propose(struct steps *s)
{
  TRY(pending_solve(s));
  team_run(s->f->task->threads, s->b->mine, frame_propose, s);
  return OK;
}

/* A rank that has failed gives up its members.  Otherwise the other ranks would try them forever.
 * If it failed for lack of memory, no member was begun, and the next exchange tells the others. */
static void own_give_up(struct steps *s)
{
  if (!s->own_verdict) return;
  for (idx i = 0; i < s->b->mine; i++) {
    struct proposal *to = own_proposal(s, i);
    if (s->own_verdict[i] == PENDING) to->verdict = s->own_verdict[i] = GIVEN_UP;
    to->is_tried = 0;
  }
}

/* All members are decided: set the frames of own atoms.  The owner of an accepted member proposes
 * its frame again, so the last proposals have the new frames of all accepted members.  Ranks of
 * this node may still read the old frames, so the call waits for them first.  It does not wait
 * again after writing: no other batch of the sweep has these atoms, and whoever reads them next
 * waits for all ranks first. */
static int frames_keep(struct steps *s)
{
  struct refit_state *f = s->f;
  const struct atom_batch *b = s->b;
  gidx frame = (gidx)f->d * f->p;
  TRY(refit_frames_sync(f));
  for (idx m = 0; m < b->count && !comm_failure(f->c); m++) {
    idx own = b->atom[m] - f->own_first;
    if (s->verdict[m] != ACCEPTED || own < 0 || own >= f->own_count) continue;
    memcpy(f->frames + b->atom[m] * frame, proposal_of(s, m)->frame, (size_t)frame * sizeof(real));
  }
  return OK;
}

/* Solve what is pending, and propose frames.  *any <- a member is still undecided on any rank. */
static int round_propose(struct steps *s, int *any)
{
  struct comm *c = s->f->c;
  phase_begin(s->solving);
  if (!comm_failure(c)) comm_record(c, frames_propose(s));
  if (comm_failure(c)) own_give_up(s);
  TRY(atom_batch_allgather(s->b, c, s->own, s->unit, s->all));
  *any = 0;
  for (idx m = 0; m < s->b->count; m++) {
    s->verdict[m] = proposal_of(s, m)->verdict;
    *any |= s->verdict[m] == PENDING;
  }
  if (!*any) TRY(frames_keep(s));
  phase_end(s->solving, 0);
  return OK;
}

static int frames_try(struct steps *s)
{
  struct moves_job job = moves_job(s, 0);
  return device_moves_try(&s->f->device, &job);
}

/* Try the proposed frames, decide, and keep what is accepted.  *any: as for round_propose(). */
static int round_decide(struct steps *s, int *any)
{
  struct refit_state *f = s->f;
  const struct atom_batch *b = s->b;
  phase_begin(s->moving);
  if (!comm_failure(f->c)) comm_record(f->c, frames_try(s));
  comm_lockstep_begin(f->c); /* ranks met when frames were proposed; memory is allocated */
  TRY(rows_received_take(&s->received, b, f, s->objective, 1, s->gathered));
  own_decide(s);
  TRY(atom_batch_allgather(b, f->c, s->own_verdict, sizeof(idx), s->verdict));
  comm_lockstep_end(f->c);
  *any = 0;
  for (idx m = 0; m < b->count; m++) *any |= s->verdict[m] == PENDING;
  if (!comm_failure(f->c)) comm_record(f->c, accepted_keep(s));
  if (!*any) TRY(frames_keep(s));
  phase_end(s->moving, 0);
  return OK;
}

int atom_batch_step(struct refit_state *f, const struct atom_batch *b,
                    const struct batch_systems *a, struct phase *solving, struct phase *moving,
                    struct atom_step *steps)
{
  struct steps s = {.f = f, .b = b, .a = a, .solving = solving, .moving = moving};
  int any = 1;
  if (comm_proceeds(f->c)) TRY(comm_record_needed(f->c, steps_alloc(&s)));
  if (comm_proceeds(f->c)) TRY(comm_record_needed(f->c, rows_received_open(&s.received, b, f, 1)));
  while (any) {
    TRY(round_propose(&s, &any));
    if (any) TRY(round_decide(&s, &any));
  }
  for (idx m = 0; m < b->count; m++) {
    steps[m] = proposal_of(&s, m)->step;
    steps[m].accepted = s.verdict[m] == ACCEPTED;
  }
  rows_received_close(&s.received);
  arena_free(&s.arena);
  return OK;
}
