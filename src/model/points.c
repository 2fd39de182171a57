/* SPDX-License-Identifier: BSD-3-Clause
 * Members in the order of run.json; the number after each is its column in a file. */
#include "model/points.h"

#include "base/status.h"

#define FIT(key, type, name, column) LINE_MEMBER(struct fit_line, key, type, name, column)
static const struct line_member fit_members[] = {
    FIT("sweep", LINE_LONG, sweep, 1),       FIT("unseen", LINE_REAL, held, 3),
    FIT("fitted", LINE_REAL, fitted, 2),     FIT("dead", LINE_LONG, dead, 4),
    FIT("revived", LINE_LONG, revived, 5),   FIT("accepted", LINE_LONG, accepted, 6),
    FIT("rejected", LINE_LONG, rejected, 7), FIT("escalated", LINE_LONG, escalated, 8),
    FIT("move", LINE_REAL, move, 0),         FIT("seconds", LINE_REAL, seconds, 0),
};
const struct line_form fit_line_form = {sizeof(struct fit_line), 8, LENGTH(fit_members),
                                        fit_members, NULL};

#define FIND(key, type, name, column) LINE_MEMBER(struct find_line, key, type, name, column)
static const struct line_member find_members[] = {
    FIND("update", LINE_LONG, update, 1),
    FIND("atoms", LINE_INDEX, atoms, 2),
    FIND("l0", LINE_REAL, l0, 3),
    FIND("unseen", LINE_REAL, held, 6),
    FIND("unseen_l0", LINE_REAL, held_out_l0, 7),
    FIND("dead", LINE_LONG, dead, 4),
    FIND("replaced", LINE_LONG, replaced, 5),
    FIND("seconds", LINE_REAL, seconds, 0),
};
const struct line_form find_line_form = {sizeof(struct find_line), 7, LENGTH(find_members),
                                         find_members, NULL};

#define TRAIN(key, type, name, column) LINE_MEMBER(struct train_line, key, type, name, column)
static const struct line_member train_members[] = {
    TRAIN("step", LINE_LONG, step, 1),      TRAIN("unseen", LINE_REAL, held, 3),
    TRAIN("batches", LINE_REAL, fitted, 2), TRAIN("dead", LINE_LONG, dead, 4),
    TRAIN("l0", LINE_REAL, l0, 0),          TRAIN("seconds", LINE_REAL, seconds, 0),
};
const struct line_form train_line_form = {sizeof(struct train_line), 4, LENGTH(train_members),
                                          train_members, NULL};
