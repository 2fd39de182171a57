/* SPDX-License-Identifier: BSD-3-Clause
 * CUDA copies memory that is not page-locked with one thread, through page-locked memory of its
 * own.  Here spare threads fill several page-locked parts in turn: while one part is copied to the
 * GPU, the next is filled. */
#include "device/cuda/upload.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

enum { PART = 8 << 20, PIECE = 512 << 10 };

/* A part of an array, divided into pieces for threads. */
struct filling {
  char *to;
  const char *from;
  gidx bytes;
};

static void piece_fill(void *self, gidx i)
{
  const struct filling *f = self;
  gidx begin = i * PIECE;
  memcpy(f->to + begin, f->from + begin, (size_t)imin(f->bytes - begin, PIECE));
}

static int part_open(struct cuda_upload *u, int i)
{
  if (!u->part[i]) TRY_CU(cudaHostAlloc(&u->part[i], PART, cudaHostAllocDefault));
  if (!u->sent[i]) TRY_CU(cudaEventCreateWithFlags(&u->sent[i], cudaEventDisableTiming));
  return OK;
}

/* Is the page-locked memory there?  If memory cannot be locked, CUDA copies in its own way. */
static int is_open(struct cuda_upload *u)
{
  int status = OK;
  for (int i = 0; i < LENGTH(u->part) && !status; i++) status = part_open(u, i);
  if (status) cudaGetLastError();
  status_clear();
  return !status;
}

int cuda_upload(struct cuda_state *s, void *to, const void *from, gidx bytes)
{
  struct cuda_upload *u = &s->upload;
  if (team_spare() < 2 || !is_open(u)) {
    TRY_CU(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyHostToDevice, s->stream));
    return cuda_finish(s);
  }
  for (gidx done = 0, n; done < bytes; done += n) {
    u->turn = (u->turn + 1) % LENGTH(u->part);
    n = imin(bytes - done, PART);
    struct filling f = {u->part[u->turn], (const char *)from + done, n};
    TRY_CU(cudaEventSynchronize(u->sent[u->turn]));
    spare_run(ceil_div(n, PIECE), piece_fill, &f);
    TRY_CU(cudaMemcpyAsync((char *)to + done, f.to, (size_t)n, cudaMemcpyHostToDevice, s->stream));
    TRY_CU(cudaEventRecord(u->sent[u->turn], s->stream));
  }
  return OK;
}

void cuda_upload_close(struct cuda_state *s)
{
  struct cuda_upload *u = &s->upload;
  for (int i = 0; i < LENGTH(u->part); i++) {
    if (u->part[i]) cudaFreeHost(u->part[i]);
    if (u->sent[i]) cudaEventDestroy(u->sent[i]);
  }
  *u = (struct cuda_upload){0};
}
