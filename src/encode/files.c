/* SPDX-License-Identifier: BSD-3-Clause
 * The files worker reads rows while the writer writes the block that was finished last.  If no
 * thread is spare, the files worker does both.  Meanwhile only the confirmer uses a file, too
 * (encode_impl.h). */
#include "encode/files.h"

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "encode/encode_impl.h"
#include "model/access.h"

static int results_write(const struct file_job *j)
{
  const struct encode_task *t = j->task;
  phase_begin(&j->phases[PHASE_WRITE]);
  TRY(t->sink->write(t->sink->self, &j->write));
  phase_end(&j->phases[PHASE_WRITE], (double)j->write.n * j->write.s * 4 * (t->codes ? 3 : 2));
  return OK;
}

/* How rows are read, hashed and centred in host memory. */
static struct rows_load load_of(const struct file_job *j, float *x)
{
  return (struct rows_load){.rows = j->task->rows,
                            .first = j->read_first,
                            .count = j->read_count,
                            .x = x,
                            .terms = j->rows_terms,
                            .mean = j->task->mean,
                            .whole = encode_whole(j->task),
                            .place = j->task->first + j->read_first};
}

/* A GPU found that a row is not finite: read it again on the host, which names it in an error. */
static int row_refuse(const struct file_job *j, gidx row)
{
  struct arena arena = {0};
  float *x;
  TRY(arena_alloc(&arena, &x, j->task->rows->p, sizeof *x));
  struct rows_load load = load_of(j, x);
  load.first += row, load.place += row;
  load.count = 1;
  load.terms = NULL;
  TRY(rows_load(&load));
  arena_free(&arena);
  FAIL(ERR_INTERNAL, "row %lld is finite on the host alone", (long long)load.place);
}

/* The rest of rows_load(), for rows that are on a GPU now. */
static int rows_preprocess(const struct file_job *j)
{
  struct preprocess_job job = {.rows = j->read_into,
                               .at = j->read_at,
                               .first = j->task->first + j->read_first,
                               .n = j->read_count};
  TRY(preprocess_run(j->preprocess, &job));
  *j->rows_terms += job.terms;
  return job.bad < 0 ? OK : row_refuse(j, job.bad);
}

/* Read rows into host memory; steps that the GPU does are left out. */
static int rows_to_host(const struct file_job *j, gidx at)
{
  struct rows_load load = load_of(j, (float *)j->read_into->host + at);
  if (j->preprocess) load.terms = NULL, load.mean = NULL, load.whole = NULL;
  return rows_load(&load);
}

/* The GPU that routes the rows computes them. */
static int rows_make(const struct file_job *j, gidx at)
{
  const struct row_source *rows = j->task->rows;
  float *x = (float *)j->read_into->device + at;
  return rows->make(rows->self, j->read_first, j->read_count, x);
}

/* Read rows, hash them, subtract the mean, check them, and copy them to the device.  A GPU does all
 * steps after the reading, and computes the rows if it can. */
static int rows_read(const struct file_job *j)
{
  const struct row_source *rows = j->task->rows;
  gidx at = j->read_at * rows->p, count = (gidx)j->read_count * rows->p;
  gidx bytes = count * (gidx)sizeof(float), begin = at * (gidx)sizeof(float);
  int is_made = encode_rows_made(rows, j->device);
  phase_begin(&j->phases[PHASE_READ]);
  TRY(is_made ? rows_make(j, at) : rows_to_host(j, at));
  phase_end(&j->phases[PHASE_READ], (double)j->read_count * rows->row_bytes);
  phase_begin(&j->phases[PHASE_COPY]);
  if (!is_made) TRY(device_put(j->device, j->read_into, begin, bytes));
  if (j->preprocess) TRY(rows_preprocess(j));
  phase_end(&j->phases[PHASE_COPY], is_made ? 0 : (double)bytes);
  return OK;
}

static int read_run(void *argument)
{
  const struct file_job *j = argument;
  return j->read_count > 0 ? rows_read(j) : OK;
}

static int write_run(void *argument)
{
  return results_write(argument);
}

/* Write and read in one thread, when none is spare. */
static int both_run(void *argument)
{
  const struct file_job *j = argument;
  if (j->write.n > 0) TRY(results_write(j));
  return read_run(argument);
}

int files_start(struct encode *e)
{
  gidx n = encode_superblock_at(e, e->read), first, partition_first, share;
  gidx buffer = e->readings++ % ROW_BUFFERS;
  encode_group_partition(e, n, e->number, &first, &share);
  encode_rank_partition(e, n, e->c->rank, &partition_first, &share);
  e->file_job = (struct file_job){.task = e->task,
                                  .read_first = e->read + partition_first,
                                  .read_count = (idx)share,
                                  .device = &e->device,
                                  .read_into = &e->rows[buffer],
                                  .read_at = partition_first - first,
                                  .preprocess = e->preprocess.device ? &e->preprocess : NULL,
                                  .write = e->finished,
                                  .phases = e->result->phases,
                                  .rows_terms = &e->terms[buffer]};
  e->terms[buffer] = 0;
  e->read += n;
  e->finished.n = 0;
  if (team_spare() == 1) return worker_start(&e->files, both_run, &e->file_job);
  /* The writer is opened in the first call; all ranks agree on the status of that call. */
  if (!e->writer.state) TRY(worker_open(&e->writer));
  if (e->file_job.write.n > 0) TRY(worker_start(&e->writer, write_run, &e->file_job));
  return worker_start(&e->files, read_run, &e->file_job);
}

int files_wait(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_WAIT_FILES];
  phase_begin(phase);
  int read = worker_wait(&e->files), written = e->writer.state ? worker_wait(&e->writer) : OK;
  TRY(written ? written : read);
  phase_end(phase, 0);
  return OK;
}
