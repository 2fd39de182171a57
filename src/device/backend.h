/* SPDX-License-Identifier: BSD-3-Clause
 * The backends of a device: a table of operations, one table for the CPU and one for CUDA.
 *
 * Floor: device.
 *
 * The arguments are checked before a function of the table is called: in device.c, operations.c,
 * attention.c, mixer.c, train.c, triad.c, tensor.c and preprocess.c.  A NULL in the table is an
 * operation that the backend lacks.  The caller then gets ERR_DEVICE, or the answer that the
 * comment at the member gives. */
#ifndef DEVICE_BACKEND_H
#define DEVICE_BACKEND_H

#include "base/status.h"
#include "device/arrow.h"
#include "device/attention.h"
#include "device/attribution.h"
#include "device/codes.h"
#include "device/dense.h"
#include "device/device.h"
#include "device/encoder.h"
#include "device/preprocess.h"
#include "device/joint.h"
#include "device/lanczos.h"
#include "device/mixer.h"
#include "device/normal.h"
#include "device/refit.h"
#include "device/route.h"
#include "device/steps.h"
#include "device/train.h"
#include "device/tensor.h"
#include "device/triad.h"

struct backend {
  const char *kind;
  void (*library)(char *text, size_t capacity); /* version of the library; NULL on the CPU */

  /* device.h */
  int (*open)(struct device *dev, const struct device_options *options);
  /* Prepare for the job that the options announce; NULL: nothing to prepare. */
  int (*prepare)(struct device *dev);
  /* *bytes <- the memory in which the device keeps max_atoms atoms, for device_open_dry(). */
  int (*forms_bytes)(const struct device_options *options, gidx *bytes);
  /* *bytes <- the memory of the GPU, divided by the number of ranks of this node that use the GPU;
   * INT64_MAX if there is no GPU.  NULL: no limit. */
  int (*memory)(const struct device_options *options, int local_size, gidx *bytes);
  /* Do the slow part of `open` early, from any thread; NULL: `open` has no slow part. */
  void (*warm)(const struct device_options *options);
  void (*close)(struct device *dev);
  int (*finish)(struct device *dev);               /* NULL: all has ended */
  int (*follow)(struct device *dev, void *stream); /* NULL: there are no streams */
  int (*exchange)(struct device *dev);             /* NULL: there is no gpu.exchanges */
  int (*exchange_mark)(struct device *dev, gidx turn);
  int (*exchanged)(struct device *dev, gidx turn, int *is_done);
  int (*exchange_follow)(struct device *dev, gidx turn);
  int (*copy_rate)(struct device *dev, double *rate); /* NULL: 0 */
  double (*peak)(const struct device *dev, double seconds);

  /* buffer.h */
  int (*alloc)(struct device *dev, struct buffer *b);
  int (*alloc_device)(struct device *dev, struct buffer *b);
  int (*wrap)(struct device *dev, struct buffer *b);
  int (*wrap_spare)(struct device *dev, struct buffer *b);
  void (*free)(struct device *dev, struct buffer *b);
  int (*put)(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
  int (*get)(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
  int (*clear)(struct device *dev, const struct buffer *b, gidx at, gidx bytes);
  int (*gather)(struct device *dev, const struct gather_job *job);
  void (*pin)(struct device *dev, void *host, gidx bytes); /* NULL: nothing is gained */
  void (*unpin)(struct device *dev, void *host);
  int (*bytes_available)(struct device *dev, gidx *bytes); /* NULL: no limit */

  /* route.h, encoder.h, codes.h, arrow.h */
  int (*put_tile)(struct device *dev, const float *atoms, idx count, idx first);
  void (*forget)(struct device *dev);
  int (*atoms)(struct device *dev, struct buffer *view); /* NULL: atoms are kept in other forms */
  int (*route)(struct device *dev, struct route_job *job);
  int (*place)(struct device *dev, const struct scatter_job *job);
  int (*encoder)(struct device *dev, struct encoder_job *job);
  int (*codes)(struct device *dev, const struct codes_job *job);
  int (*quality)(struct device *dev, const struct quality_job *job);
  /* Bytes of one row's state; NULL: 0. */
  gidx (*codes_state_bytes)(idx vectors, real rho, int nonnegative);
  int (*arrow)(struct device *dev, struct arrow_job *job);
  int (*arrow_ready)(struct device *dev, const struct arrow_job *job); /* NULL: nothing to do */
  gidx (*arrow_bytes)(gidx largest);                                   /* NULL: 0 */

  /* preprocess.h */
  int (*preprocess_run)(struct preprocess *in, struct preprocess_job *job);
  int (*preprocess_sums)(struct preprocess *in, const struct buffer *rows, gidx first, idx n,
                         real *ended);

  /* attention.h */
  int (*attention)(struct device *dev, const struct attention_job *job);
  int (*attend_open)(struct attend *w, const struct attend_plan *plan);
  void (*attend_close)(struct attend *w);
  int (*attend_run)(struct attend *w, const struct attend_job *job);

  /* attribution.h */
  int (*attribution)(struct device *dev, const struct attribution_job *job);
  int (*attend_attribute)(struct attend *w, const struct attribute_job *job);

  /* mixer.h; mixer_close is called only if mixer_open left a state */
  int (*mixer_open)(struct mixer *w); /* NULL: nothing to prepare */
  void (*mixer_close)(struct mixer *w);
  int (*mixer_run)(struct mixer *w, const struct mixer_job *job); /* w->way has been filled */

  /* refit.h */
  int (*residuals)(struct device *dev, const struct residual_job *job);
  int (*row_products)(struct device *dev, const real *residual, idx p,
                      const struct rows_item *items, gidx count);
  int (*row_sums)(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                  gidx count);
  int (*moves_try)(struct device *dev, const struct moves_job *job);
  int (*moves_keep)(struct device *dev, const struct moves_job *job);
  int (*directions_keep)(struct device *dev, idx d, idx p, const struct keep_item *items,
                         gidx count);
  real (*frame_end)(const struct device *dev, const struct frame_end *end); /* NULL: relax.h's */

  /* steps.h */
  int (*steps)(struct device *dev, const struct steps_job *job);
  int (*steps_index)(struct device *dev, const struct steps_job *job, gidx *start);
  int (*steps_conflicts)(struct device *dev, const struct steps_job *job,
                         const struct steps_conflicts *look);
  int (*steps_residual)(struct device *dev, const struct steps_job *job, real *residual);
  gidx (*steps_bytes)(const struct device *dev, const struct steps_job *job); /* NULL: 0 */

  /* dense.h; dense_close and joint_close are called only if open left a state */
  int (*dense_open)(struct dense *d);
  void (*dense_close)(struct dense *d);
  int (*cholesky)(struct dense *d, real *s, idx n, gidx stride, real *pivot, idx *good);
  int (*inverse)(struct dense *d, real *l, idx n, gidx stride);
  int (*product)(struct dense *d, const struct dense_product *p);
  int (*entries)(struct dense *d, const struct dense_entries *e);
  gidx (*dense_bytes)(int threads, idx panel, idx max_n);

  /* normal.h */
  int (*normal_add)(struct device *dev, const struct normal_job *job);
  int (*normal_decay)(struct device *dev, struct buffer *values, gidx at, gidx count, real beta);
  int (*normal_descend)(struct device *dev, const struct descend_job *job);
  int (*normal_energies)(struct device *dev, const struct energies_job *job);
  int (*normal_clear)(struct device *dev, const struct clear_job *job);
  gidx (*normal_bytes)(idx n, idx s, idx k, idx columns); /* NULL: 0 */

  /* triad.h */
  int (*triad_product)(struct device *dev, enum precision precision, const struct triad_product *p,
                       void *work);
  int (*triad_gradient)(struct device *dev, enum precision precision,
                        const struct triad_gradient *g, void *work);
  gidx (*triad_product_bytes)(const struct device *dev, enum precision precision,
                              const struct triad_product *p); /* NULL: 0; the same for the next */
  gidx (*triad_gradient_bytes)(const struct device *dev, enum precision precision,
                               const struct triad_gradient *g);
  int (*triad_sparse)(struct device *dev, const struct triad_lists *l, int is_gradient, float *out);
  int (*triad_dots)(struct device *dev, const struct triad_lists *l, const float *rows, float *out);
  int (*adam)(struct device *dev, const struct adam_state *s, const struct adam_rates *rates);

  /* tensor.h; NULL: there is no matrix unit */
  double (*tensor_peak)(const struct device *dev, enum precision precision);
  int (*tensor_product)(struct device *dev, enum precision precision, const struct triad_product *p,
                        struct tensor_stored stored, void *work);
  int (*tensor_gradient)(struct device *dev, enum precision precision,
                         const struct triad_gradient *g, struct tensor_stored stored, void *work);
  gidx (*tensor_product_bytes)(const struct device *dev, enum precision precision,
                               const struct triad_product *p, struct tensor_stored stored);
  gidx (*tensor_gradient_bytes)(const struct device *dev, enum precision precision,
                                const struct triad_gradient *g, struct tensor_stored stored);

  /* train.h */
  int (*train_codes)(struct device *dev, const struct train_codes_job *job);
  gidx (*train_codes_bytes)(const struct train_codes_job *job);
  int (*train_scores)(struct device *dev, const struct train_codes_job *job);
  int (*train_count)(struct device *dev, const struct train_codes_job *job,
                     const struct batch_cut *cut, gidx *counts);
  int (*train_cut)(struct device *dev, const struct train_codes_job *job,
                   const struct batch_cut *cut, gidx ties);
  gidx (*train_batch_bytes)(const struct train_codes_job *job);
  int (*train_raise)(struct device *dev, const struct train_codes_job *job,
                     const struct train_raise *raise);
  int (*train_blocks)(struct device *dev, const struct train_blocks_job *job);
  int (*train_suffix)(struct device *dev, float *errors, gidx n, int blocks, idx p);
  int (*train_block_get)(struct device *dev, const float *errors, gidx n, int blocks, int block,
                         idx p, float *to);
  int (*train_offset)(struct device *dev, float *x, gidx n, idx p, const float *offset);
  int (*train_sums)(struct device *dev, const float *rows, gidx n, gidx stride, idx p, float *to);
  int (*train_errors)(struct device *dev, const struct train_errors_job *job);
  int (*train_scale)(struct device *dev, float *values, gidx count, float factor);
  int (*train_transpose)(struct device *dev, const struct train_transpose_job *job);
  gidx (*train_transpose_bytes)(idx n, idx k); /* NULL: 0 */
  int (*train_idle)(struct device *dev, const struct train_idle_job *job);
  int (*train_tangent)(struct device *dev, const float *atoms, gidx count, idx p, float *gradient);
  int (*train_normalize)(struct device *dev, float *atoms, gidx count, idx p);

  /* joint.h, lanczos.h */
  int (*joint_open)(struct joint_work *w);
  void (*joint_close)(struct joint_work *w);
  int (*joint_begin)(struct joint_work *w, struct dense *d, real *s, gidx stride);
  int (*joint_batch)(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums);
  int (*joint_add)(struct joint_work *w, real *s, gidx stride);
  gidx (*joint_bytes)(const struct joint *j, idx longest, gidx capacity); /* NULL: 0 */
  int (*joint_row_size)(const struct joint_work *w, idx i, struct joint_size *size);
  int (*parts_append)(struct parts *p, struct joint_work *w, idx first, idx end);
  int (*parts_apply)(struct device *dev, const struct parts *p, idx n, idx groups, const real *x,
                     real *y);
  int (*lanczos_step)(struct device *dev, struct lanczos *l, idx j, real *y);
};

extern const struct backend backend_cpu;

/* In a build without CUDA, `open` fails with ERR_DEVICE and says how to get CUDA (none.c). */
extern const struct backend backend_cuda;

/* ERR_DEVICE unless the device's table has this operation. */
#define CHECK_HAS(dev, row)                                                                        \
  CHECK((dev)->backend && (dev)->backend->row, ERR_DEVICE,                                         \
        "a device of kind '%s' has no operation '" #row "'",                                       \
        (dev)->backend ? (dev)->backend->kind : "dry")

#endif
