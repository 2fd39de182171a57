/* SPDX-License-Identifier: BSD-3-Clause
 * The lowest rank of a node provides all the memory.  Each rank is the first to write an equal part
 * of the pages, so that they lie near the processors of different ranks. */
#include "comm/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/watchdog.h"
#include "comm/mpi_impl.h"

enum { ALIGN = 64, PIECE = 1 << 30 };
/* BESIDE: bytes that MPI needs in addition.  1 / FREE_PARTS of the memory must be free in addition,
 * since Open MPI wants a twentieth of the folder to stay free. */
enum { BESIDE = 1 << 20, FREE_PARTS = 19 };

struct comm_shared_window {
  MPI_Comm node;
  MPI_Win window;
  int is_open; /* whether the window is open */
};

/* The folder where Open MPI on Linux, and MPICH, put shared memory. */
static const char *folder_find(void)
{
  const char *told = getenv("OMPI_MCA_osc_sm_backing_directory");
  return told && *told ? told : "/dev/shm";
}

int comm_shared_check(const struct comm *c, gidx bytes)
{
  struct statvfs room;
  struct rlimit file;
  const char *folder = folder_find();
  gidx wanted = bytes + bytes / FREE_PARTS + BESIDE;
  void *trial =
      mmap(NULL, (size_t)wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(trial != MAP_FAILED, ERR_MEMORY, "%lld bytes are more than the address space has left",
        (long long)wanted);
  munmap(trial, (size_t)wanted);
  if (c->local_rank) return OK;
  int step = watchdog_begin(ERR_IO, "looking at", folder), failed = statvfs(folder, &room);
  watchdog_end(step);
  CHECK(!failed, ERR_MEMORY, "cannot look at '%s': %s", folder, strerror(errno));
  gidx left = (gidx)room.f_bavail * (gidx)room.f_frsize;
  CHECK(wanted <= left, ERR_MEMORY, "%lld bytes in '%s' are needed, %lld are free",
        (long long)wanted, folder, (long long)left);
  CHECK(getrlimit(RLIMIT_FSIZE, &file) || file.rlim_cur == RLIM_INFINITY ||
            (uint64_t)wanted <= (uint64_t)file.rlim_cur,
        ERR_MEMORY, "shared memory needs a file of %lld bytes, the limit for files is %llu",
        (long long)wanted, (unsigned long long)file.rlim_cur);
  return OK;
}

/* All ranks meet before this call.  It blocks while it holds the mutex of MPI, which the signs of
 * life need, too. */
static int window_make(struct comm *c, gidx bytes, struct comm_shared *s, char **base)
{
  struct comm_shared_window *w = s->state;
  MPI_Aint size;
  int unit, has = 0, *model = NULL;
  TRY_MPI(MPI_Comm_split_type(c->state->world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &w->node));
  TRY_MPI(MPI_Comm_rank(w->node, &s->rank));
  TRY_MPI(MPI_Comm_size(w->node, &s->ranks));
  MPI_Aint own = s->rank ? 0 : (MPI_Aint)(bytes + ALIGN);
  int error = MPI_Win_allocate_shared(own, 1, MPI_INFO_NULL, w->node, base, &w->window);
  CHECK(!error, ERR_MEMORY,
        "MPI cannot share %lld bytes among the ranks of a node: give '--share no'",
        (long long)bytes);
  w->is_open = 1;
  TRY_MPI(MPI_Win_set_errhandler(w->window, MPI_ERRORS_RETURN));
  TRY_MPI(MPI_Win_get_attr(w->window, MPI_WIN_MODEL, &model, &has));
  CHECK(has && *model == MPI_WIN_UNIFIED, ERR_COMM,
        "this MPI shares memory in separate copies: give '--share no'");
  TRY_MPI(MPI_Win_shared_query(w->window, 0, &size, &unit, base));
  TRY_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w->window));
  return OK;
}

/* The memory begins at the same offset on all ranks: where the first rank's address is a multiple
 * of ALIGN. */
static int room_agree(struct comm *c, char *base, gidx bytes, struct comm_shared *s)
{
  struct {
    gidx at, rank;
  } first = {(gidx)(-(uintptr_t)base % ALIGN), c->rank};
  POST(MPI_Ibcast(&first, 2, MPI_INT64_T, 0, s->state->node, &request_));
  s->at = base + first.at;
  s->bytes = bytes;
  s->has_first = first.rank == 0;
  return OK;
}

/* Write zeros into this rank's part of the pages, by system calls: if there is no page, a system
 * call fails, but a write by the program would get SIGBUS. */
static int memory_populate(const struct comm_shared *s)
{
  gidx page = sysconf(_SC_PAGESIZE), first, count, done = 0;
  comm_partition((s->bytes + page - 1) / page, s->ranks, s->rank, &first, &count);
  first *= page;
  count = first + count * page < s->bytes ? count * page : s->bytes - first;
  int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  CHECK(zero >= 0, ERR_MEMORY, "cannot open '/dev/zero': %s", strerror(errno));
  while (done < count) {
    gidx piece = count - done < PIECE ? count - done : PIECE;
    ssize_t got = read(zero, (char *)s->at + first + done, (size_t)piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += got;
  }
  close(zero);
  CHECK(done >= count, ERR_MEMORY,
        "the memory that the ranks of a node share ends after %lld of %lld bytes: is '%s' full?  "
        "'--share no' needs no such memory",
        (long long)done, (long long)count, folder_find());
  return OK;
}

/* Ask for pages of 2 MB for the shared memory; the system may refuse. */
static void huge_memory_advise(const struct comm_shared *s)
{
#ifdef MADV_HUGEPAGE
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)s->at / page * page;
  madvise((void *)at, (size_t)((uintptr_t)s->at - at) + (size_t)s->bytes, MADV_HUGEPAGE);
#else
  (void)s;
#endif
}

int comm_shared_open(struct comm *c, gidx bytes, struct comm_shared *s)
{
  char *base = NULL;
  *s = (struct comm_shared){.state = calloc(1, sizeof *s->state)};
  int has = s->state != NULL;
  TRY(comm_agree(c, has ? OK
                        : status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate a window")));
  POST(MPI_Ibarrier(c->state->world, &request_));
  int step = watchdog_begin(ERR_COMM, "sharing memory among the ranks of a node", NULL);
  pthread_mutex_lock(c->state->mpi);
  int status = window_make(c, bytes, s, &base);
  pthread_mutex_unlock(c->state->mpi);
  watchdog_end(step);
  TRY(status);
  TRY(room_agree(c, base, bytes, s));
  huge_memory_advise(s);
  TRY(comm_agree(c, memory_populate(s)));
  return comm_shared_sync(c, s);
}

int comm_shared_sync(struct comm *c, struct comm_shared *s)
{
  if (!s->state) return OK;
  pthread_mutex_lock(c->state->mpi);
  int error = MPI_Win_sync(s->state->window);
  pthread_mutex_unlock(c->state->mpi);
  TRY_MPI(error);
  POST(MPI_Ibarrier(s->state->node, &request_));
  pthread_mutex_lock(c->state->mpi);
  error = MPI_Win_sync(s->state->window);
  pthread_mutex_unlock(c->state->mpi);
  TRY_MPI(error);
  return OK;
}

static int window_free(struct comm_shared_window *w)
{
  if (w->is_open) {
    TRY_MPI(MPI_Win_unlock_all(w->window));
    TRY_MPI(MPI_Win_free(&w->window));
  }
  TRY_MPI(MPI_Comm_free(&w->node));
  return OK;
}

int comm_shared_close(struct comm *c, struct comm_shared *s)
{
  if (!s->state) return OK;
  POST(MPI_Ibarrier(c->state->world, &request_));
  int step = watchdog_begin(ERR_COMM, "ending memory that ranks share", NULL);
  pthread_mutex_lock(c->state->mpi);
  int status = window_free(s->state);
  pthread_mutex_unlock(c->state->mpi);
  watchdog_end(step);
  TRY(status);
  free(s->state);
  *s = (struct comm_shared){0};
  return OK;
}
