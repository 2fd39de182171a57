/* SPDX-License-Identifier: BSD-3-Clause
 * The kernels: their table, their texts, and the -D constants of each compiled form.
 *
 * Floor: device.  Needs neither CUDA nor NVRTC. */
#ifndef DEVICE_CUDA_KERNELS_H
#define DEVICE_CUDA_KERNELS_H

#include "base/types.h"
#include "arrow_types.h"
#include "attention_types.h"
#include "attribution_types.h"
#include "dense_types.h"
#include "mixer_types.h"
#include "screen_types.h"
#include "step_types.h"
#include "tensor_types.h"
#include "triad_types.h"

/* The files of the folder kernels, built in; the last one has name NULL. */
struct kernel_text {
  const char *name, *text;
};
extern const struct kernel_text kernel_texts[];

/* Groups of -D constants.  kernels.c takes their values from the forms of kernels/forms.h,
 * screen_types.h and others. */
enum {
  DEFINES_LISTS = 1 << 0,      /* CAPACITY */
  DEFINES_ROUTE = 1 << 1,      /* struct route_form without CAPACITY */
  DEFINES_CODES = 1 << 2,      /* MMA, ONE */
  DEFINES_SCREEN = 1 << 3,     /* struct screen_form */
  DEFINES_TEST = 1 << 4,       /* TEST_HOOKS */
  DEFINES_VALUE = 1 << 5,      /* POSITIVE */
  DEFINES_DESCEND = 1 << 6,    /* MMA, STAGES */
  DEFINES_ARROW = 1 << 7,      /* ARROW_D, ARROW_K */
  DEFINES_TEAM = 1 << 8,       /* ARROW_TEAM, ARROW_HELD, ARROW_ALONE, MMA */
  DEFINES_STEP = 1 << 9,       /* STEP_D */
  DEFINES_PRODUCT = 1 << 10,   /* MMA, struct product_form */
  DEFINES_ROUNDS = 1 << 11,    /* ARROW_ROUNDS */
  DEFINES_TRIAD = 1 << 12,     /* struct triad_form of products */
  DEFINES_GRADIENT = 1 << 13,  /* struct triad_form of gradients */
  DEFINES_WALK = 1 << 14,      /* HEAD_D, HEAD_DV, CELLS, CAPPED, SUMS */
  DEFINES_FEW = 1 << 15,       /* FEW */
  DEFINES_PRECISION = 1 << 16, /* PRECISION */
  DEFINES_TENSOR = 1 << 17,    /* struct tensor_form of products */
  DEFINES_TURNED = 1 << 18,    /* struct tensor_form of gradients */
  DEFINES_CHAINS = 1 << 19,    /* MMA */
  DEFINES_MIXER = 1 << 20      /* HEAD_D, HEAD_DV, BY_COLUMN, struct mixer_form */
};

/* Every kernel, one line each: X(NAME, file, hot, defines) for KERNEL_NAME.  `file` also names
 * the kernel's function; hot = 1 forbids spilled registers; defines: its groups of constants. */
#define KERNEL_TABLE(X)                                                                            \
  X(GATHER, gather, 0, 0)                                                                          \
  X(LISTS_SCATTER, lists_scatter, 0, 0)                                                            \
  X(FRAME_ROWS, frame_rows, 0, 0)                                                                  \
  X(PREPROCESS, preprocess, 0, 0)                                                                  \
  X(COLUMN_SUMS, column_sums, 0, 0)                                                                \
  X(PACK, pack, 0, 0)                                                                              \
  X(ROUTE, route, 1, DEFINES_LISTS | DEFINES_ROUTE | DEFINES_VALUE)                                \
  X(MERGE, merge, 0, DEFINES_LISTS)                                                                \
  X(ENCODER_SCORES, encoder_scores, 1, DEFINES_ROUTE)                                              \
  X(ENCODER_COUNT, encoder_count, 0, 0)                                                            \
  X(ENCODER_SCATTER, encoder_scatter, 0, 0)                                                        \
  X(ENCODER_ORDER, encoder_order, 0, 0)                                                            \
  X(GRAM, gram, 1, DEFINES_CODES)                                                                  \
  X(CODES, codes, 1, DEFINES_CODES)                                                                \
  X(NONNEGATIVE, nonnegative, 1, DEFINES_CODES)                                                    \
  X(TO_F16_ATOMS, to_f16_atoms, 0, 0)                                                              \
  X(TO_F16_ROWS, to_f16_rows, 0, DEFINES_TEST)                                                     \
  X(SCREEN, screen, 1, DEFINES_SCREEN | DEFINES_VALUE)                                             \
  X(THRESHOLD, threshold, 0, DEFINES_TEST)                                                         \
  X(PRUNE, prune, 0, DEFINES_TEST)                                                                 \
  X(RESCORE, rescore, 1, 0)                                                                        \
  X(SELECT_TOPK, select_topk, 0, 0)                                                                \
  X(NORMAL_COUNT, normal_count, 0, 0)                                                              \
  X(NORMAL_SCAN, normal_scan, 0, 0)                                                                \
  X(NORMAL_STARTS, normal_starts, 0, 0)                                                            \
  X(NORMAL_SCATTER, normal_scatter, 0, 0)                                                          \
  X(NORMAL_GRAM, normal_gram, 1, 0)                                                                \
  X(NORMAL_TARGET, normal_target, 1, 0)                                                            \
  X(NORMAL_DECAY, normal_decay, 0, 0)                                                              \
  X(NORMAL_CLEAR, normal_clear, 0, 0)                                                              \
  X(NORMAL_ENERGIES, normal_energies, 0, 0)                                                        \
  X(NORMAL_DESCEND, normal_descend, 1, DEFINES_DESCEND)                                            \
  X(DENSE_PRODUCT, dense_product, 1, DEFINES_PRODUCT)                                              \
  X(DENSE_FACTOR, dense_factor, 1, 0)                                                              \
  X(DENSE_SOLVE, dense_solve, 1, 0)                                                                \
  X(DENSE_CORNERS, dense_corners, 0, 0)                                                            \
  X(DENSE_UNIT, dense_unit, 0, 0)                                                                  \
  X(DENSE_ENTRIES, dense_entries, 0, 0)                                                            \
  X(TRIAD_PRODUCT, triad_product, 1, DEFINES_TRIAD)                                                \
  X(TRIAD_GRADIENT, triad_gradient, 1, DEFINES_GRADIENT)                                           \
  X(TRIAD_TRANSPOSE, triad_transpose, 0, 0)                                                        \
  X(TRIAD_FOLD, triad_fold, 0, 0)                                                                  \
  X(TRIAD_SPARSE, triad_sparse, 1, 0)                                                              \
  X(TRIAD_DOTS, triad_dots, 0, 0)                                                                  \
  X(TRIAD_ADAM, triad_adam, 0, 0)                                                                  \
  X(TENSOR_NARROW, tensor_narrow, 0, DEFINES_PRECISION)                                            \
  X(TENSOR_PRODUCT, tensor_product, 1, DEFINES_PRECISION | DEFINES_TENSOR)                         \
  X(TENSOR_GRADIENT, tensor_gradient, 1, DEFINES_PRECISION | DEFINES_TURNED)                       \
  X(TRAIN_SELECT, train_select, 0, 0)                                                              \
  X(TRAIN_PACK, train_pack, 0, 0)                                                                  \
  X(TRAIN_MASK, train_mask, 0, 0)                                                                  \
  X(TRAIN_WIDEN, train_widen, 0, 0)                                                                \
  X(TRAIN_ERRORS, train_errors, 0, 0)                                                              \
  X(TRAIN_SCALE, train_scale, 0, 0)                                                                \
  X(TRAIN_COUNT, train_count, 0, 0)                                                                \
  X(TRAIN_SCATTER, train_scatter, 0, 0)                                                            \
  X(TRAIN_USED, train_used, 0, 0)                                                                  \
  X(TRAIN_IDLE, train_idle, 0, 0)                                                                  \
  X(TRAIN_TANGENT, train_tangent, 0, 0)                                                            \
  X(TRAIN_NORMALIZE, train_normalize, 0, 0)                                                        \
  X(TRAIN_OFFSET, train_offset, 0, 0)                                                              \
  X(BATCH_COUNT, batch_count, 0, 0)                                                                \
  X(BATCH_SQUARES, batch_squares, 0, 0)                                                            \
  X(BATCH_RAISE, batch_raise, 0, 0)                                                                \
  X(BATCH_ROWS, batch_rows, 0, 0)                                                                  \
  X(BATCH_STARTS, batch_starts, 0, 0)                                                              \
  X(BATCH_COMPACT, batch_compact, 0, 0)                                                            \
  X(BATCH_SUMS, batch_sums, 0, 0)                                                                  \
  X(NESTED_STARTS, nested_starts, 0, 0)                                                            \
  X(NESTED_ERRORS, nested_errors, 0, 0)                                                            \
  X(NESTED_SUFFIX, nested_suffix, 0, 0)                                                            \
  X(JOINT_ADD, joint_add, 1, 0)                                                                    \
  X(ARROW_FETCH, arrow_fetch, 0, 0)                                                                \
  X(ARROW_RETURN, arrow_return, 0, 0)                                                              \
  X(ARROW, arrow, 1, DEFINES_ARROW | DEFINES_TEAM)                                                 \
  X(ARROW_LANES, arrow_lanes, 1, DEFINES_ARROW | DEFINES_ROUNDS)                                   \
  X(ARROW_SUM, arrow_sum, 1, DEFINES_ARROW | DEFINES_CHAINS)                                       \
  X(ARROW_BORDER, arrow_border, 0, DEFINES_ARROW | DEFINES_CHAINS)                                 \
  X(ARROW_STEP, arrow_step, 1, DEFINES_ARROW)                                                      \
  X(ATTENTION_TILE, attention_tile, 1, DEFINES_WALK)                                               \
  X(ATTENTION_FEW, attention_few, 1, DEFINES_WALK | DEFINES_FEW)                                   \
  X(ATTRIBUTION, attribution, 0, DEFINES_WALK)                                                     \
  X(MIXER_GATHER, mixer_gather, 0, 0)                                                              \
  X(MIXER_CONV, mixer_conv, 0, 0)                                                                  \
  X(MIXER_NORM, mixer_norm, 0, 0)                                                                  \
  X(MIXER_STEP, mixer_step, 1, DEFINES_MIXER)                                                      \
  X(COLOR_CONFLICTS, color_conflicts, 0, 0)                                                        \
  X(RESIDUAL, residual, 0, 0)                                                                      \
  X(STEP, step, 0, DEFINES_STEP)                                                                   \
  X(STEP_RECORD, step_record, 0, 0)                                                                \
  X(STEP_FOLLOW, step_follow, 1, DEFINES_STEP)

#define KERNEL_ENUM(NAME, file, hot, defines) KERNEL_##NAME,
enum kernel_name { KERNEL_TABLE(KERNEL_ENUM) KERNELS };
#undef KERNEL_ENUM

/* The parameters for which a kernel is specialised; each kernel uses some of them.  "of f()": the
 * argument of this name of f().  "f()" alone: the result of f(). */
struct kernel_shape {
  int bulk; /* of route_form_of() */
  int mma; /* codes, descents, products, arrows: f64 tensor instructions, which are chains of fma */
  int one; /* codes: a row has at most WARP vectors */
  int tiles, whole;           /* tiles: of triad_product_form(); whole: training, all tiles are */
  int teams;                  /* products of training: whole tiles are shared by teams of blocks */
  int large;                  /* of descend_stages(), product_form_of() */
  int deep_a, deep_b, narrow; /* of product_form_of(); training also uses deep_a and deep_b */
  int stored;                 /* matrix unit: operands are stored in its precision */
  int wgmma, sample;          /* of screen_form_of(); wgmma is also that of tensor_form_of() */
  int precision;              /* matrix unit: TENSOR_BF16 and so on */
  int test_hooks;             /* certified filter: for tests that weaken its proof */
  int positive;               /* route and screen: values are the positive parts of scores (N.2) */
  idx d, top_k;
  idx k, team;         /* arrow systems: size of the border, and threads of a system in arrow.cu */
  int held;            /* arrow.cu: rows per thread in registers, arrow_resident() or 0 */
  int alone;           /* arrow.cu: arrow_is_alone() */
  int rounds;          /* arrow_lanes.cu: arrow_rounds() */
  idx head_d, head_dv; /* attention and mixers: columns of q and k, and of v */
  int cells, capped, few; /* attention: CELLS_F32 and so on, 1 with a soft cap, few_rows() */
  int sums;               /* attention: SUMS_NONE and so on */
  int few_stages;         /* attention_few.cu: a power of two, at most FEW_STAGES */
  int by_column;          /* mixers: every key column has a decay of its own */
  struct mixer_form mixer;
};

/* The shape of the kernels of codes, for rows of `vectors` vectors. */
struct kernel_shape codes_shape(int architecture, idx vectors);

enum { MAX_DEFINES = 12, MAX_DEFINE = 40 };
struct kernel_recipe {
  const char *file, *entry;
  int hot; /* 1: must not spill registers */
  int n_defines;
  char defines[MAX_DEFINES][MAX_DEFINE]; /* -DNAME=VALUE */
};

/* *recipe <- how a kernel is compiled for a shape.  Shapes with equal constants give equal
 * bytes. */
void kernel_recipe(enum kernel_name name, const struct kernel_shape *shape,
                   struct kernel_recipe *recipe);

#endif
