/* SPDX-License-Identifier: BSD-3-Clause
 * Verbs as non-blocking MPI-3 collectives, tested in a loop that sleeps until all ranks are there,
 * then polls; a mutex lets the helper thread's signs of life share the library
 * (MPI_THREAD_SERIALIZED).
 *
 * Signs go round a ring: rank r tells r + 1, and watches r - 1.  A rank that was itself suspended
 * (SIGTSTP by a batch system) starts its watch anew. */
#include "comm/comm.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "comm/inside.h"

/* Naps grow with what was waited so far, to a tenth of it, between these. */
enum { SPINS = 200, NAP_LEAST_NS = 20000, NAP_MOST_NS = 2000000 };
#define NAP_GROWTH 1.1
/* Bytes a second; what moves more slowly is polled with naps between, the shortest. */
#define SLOW_LINK 1e8

struct comm_state {
  MPI_Comm world, ring;
  pthread_mutex_t mpi;      /* held around every MPI call once the watch runs */
  pthread_mutex_t watching; /* guards quit and late */
  pthread_cond_t wake;
  pthread_t thread;
  int has_thread, quit, silent;
  double period;
};

#define TRY_MPI(call)                                                                              \
  do {                                                                                             \
    int mpi_ = (call);                                                                             \
    if (mpi_) return mpi_fail(mpi_, __FILE__, __LINE__);                                           \
  } while (0)

static int mpi_fail(int error, const char *file, int line)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  return status_fail(ERR_COMM, file, line, "MPI failed: %s", text);
}

/* A rank that nobody launched does without three services of Open MPI 4, unless the user asks for
 * them: a daemon, which has hung at its own end; a folder, which all such ranks of a user would
 * share and remove from under each other; the search for fast networks, which takes 0.2 s. */
static void alone_prepare(void)
{
  static const char *const marks[] = {
      "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_PORT", "SLURM_STEP_ID"};
  for (int i = 0; i < LENGTH(marks); i++)
    if (getenv(marks[i])) return;
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
  setenv("OMPI_MCA_pml", "ob1", 0);
}

int comm_open(struct comm *c)
{
  *c = (struct comm){.size = 1, .local_size = 1};
  int level = 0;
  alone_prepare();
  TRY_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level));
  TRY_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CHECK(level >= MPI_THREAD_SERIALIZED, ERR_COMM, "this MPI does not let two threads take turns");
  struct comm_state *s = c->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate the communicator");
  pthread_mutex_init(&s->mpi, NULL);
  TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &s->world));
  TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &s->ring));
  TRY_MPI(MPI_Comm_rank(s->world, &c->rank));
  TRY_MPI(MPI_Comm_size(s->world, &c->size));
  MPI_Comm node;
  TRY_MPI(MPI_Comm_split_type(s->world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  TRY_MPI(MPI_Comm_rank(node, &c->local_rank));
  TRY_MPI(MPI_Comm_size(node, &c->local_size));
  TRY_MPI(MPI_Comm_free(&node));
  return OK;
}

/* Tell the next rank, and see whether the one before has told; 1 if it has. */
static int signs_exchange(struct comm *c, char *mail, MPI_Request *sent, MPI_Request *expected)
{
  struct comm_state *s = c->state;
  int done = 0, heard = 0;
  pthread_mutex_lock(&s->mpi);
  MPI_Test(sent, &done, MPI_STATUS_IGNORE);
  if (done) MPI_Isend(&mail[0], 1, MPI_CHAR, (c->rank + 1) % c->size, 0, s->ring, sent);
  for (;;) {
    MPI_Test(expected, &done, MPI_STATUS_IGNORE);
    if (!done) break;
    heard = 1;
    MPI_Irecv(&mail[1], 1, MPI_CHAR, (c->rank + c->size - 1) % c->size, 0, s->ring, expected);
  }
  pthread_mutex_unlock(&s->mpi);
  return heard;
}

static void watch_wait(struct comm_state *s)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  gidx ns = until.tv_nsec + (gidx)(s->period * 1e9);
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  pthread_cond_timedwait(&s->wake, &s->watching, &until);
}

static void *watch_main(void *argument)
{
  struct comm *c = argument;
  struct comm_state *s = c->state;
  char mail[2] = {0};
  MPI_Request sent = MPI_REQUEST_NULL, expected;
  pthread_mutex_lock(&s->mpi);
  MPI_Irecv(&mail[1], 1, MPI_CHAR, (c->rank + c->size - 1) % c->size, 0, s->ring, &expected);
  pthread_mutex_unlock(&s->mpi);
  double heard = log_seconds(), looked = heard;
  pthread_mutex_lock(&s->watching);
  while (!s->quit) {
    pthread_mutex_unlock(&s->watching);
    int sign = signs_exchange(c, mail, &sent, &expected);
    double now = log_seconds();
    int suspended = now - looked > 5 * s->period;
    if (sign || suspended) heard = now;
    looked = now;
    pthread_mutex_lock(&s->watching);
    s->silent = now - heard > c->deadline;
    if (!s->quit) watch_wait(s);
  }
  pthread_mutex_unlock(&s->watching);
  pthread_mutex_lock(&s->mpi);
  MPI_Cancel(&expected);
  MPI_Request_free(&expected);
  if (sent != MPI_REQUEST_NULL) MPI_Request_free(&sent);
  pthread_mutex_unlock(&s->mpi);
  return NULL;
}

int comm_watch(struct comm *c, double deadline)
{
  struct comm_state *s = c->state;
  c->deadline = deadline;
  if (c->size == 1) return OK;
  s->period = deadline / 5 < 5 ? deadline / 5 : 5;
  pthread_mutex_init(&s->watching, NULL);
  pthread_cond_init(&s->wake, NULL);
  CHECK(pthread_create(&s->thread, NULL, watch_main, c) == 0, ERR_INTERNAL,
        "cannot start the thread that watches the peers");
  s->has_thread = 1;
  return OK;
}

static void watch_end(struct comm_state *s)
{
  if (!s->has_thread) return;
  pthread_mutex_lock(&s->watching);
  s->quit = 1;
  pthread_cond_signal(&s->wake);
  pthread_mutex_unlock(&s->watching);
  pthread_join(s->thread, NULL);
  s->has_thread = 0;
}

static int peer_silent(struct comm_state *s)
{
  if (!s->has_thread) return 0;
  pthread_mutex_lock(&s->watching);
  int silent = s->silent;
  pthread_mutex_unlock(&s->watching);
  return silent;
}

int comm_alive(struct comm *c)
{
  CHECK(c->size == 1 || !peer_silent(c->state), ERR_COMM,
        "rank %d heard nothing from rank %d for the deadline of %g seconds", c->rank,
        (c->rank + c->size - 1) % c->size, c->deadline);
  return OK;
}

int comm_pause(struct comm *c, int turn)
{
  if (turn < SPINS) {
    sched_yield();
    return OK;
  }
  TRY(comm_alive(c));
  double nap = NAP_LEAST_NS;
  for (int i = SPINS; i < turn && nap < NAP_MOST_NS; i++) nap *= NAP_GROWTH;
  struct timespec time = {0, (long)nap};
  nanosleep(&time, NULL);
  return OK;
}

/* Wait for a request without holding a core: spin a little, then sleep longer and longer.  But
 * where bytes travel in pieces, only polling moves them: for as long as they may take. */
static int request_wait(struct comm *c, MPI_Request *request, double begun, double bytes)
{
  struct comm_state *s = c->state;
  double until = begun + bytes / SLOW_LINK;
  for (int turn = 0;;) {
    int done = 0;
    pthread_mutex_lock(&s->mpi);
    int error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&s->mpi);
    TRY_MPI(error);
    if (done) break;
    TRY(comm_alive(c));
    TRY(comm_pause(c, turn));
    if (bytes == 0 || (turn <= SPINS && log_seconds() > until)) turn++;
  }
  c->seconds += log_seconds() - begun;
  return OK;
}

/* Post a non-blocking operation under the mutex, then wait for it; it moves so many bytes here. */
#define POST_BYTES(bytes, call)                                                                    \
  do {                                                                                             \
    double begun_ = log_seconds();                                                                 \
    MPI_Request request_;                                                                          \
    pthread_mutex_lock(&c->state->mpi);                                                            \
    int error_ = (call);                                                                           \
    pthread_mutex_unlock(&c->state->mpi);                                                          \
    TRY_MPI(error_);                                                                               \
    TRY(request_wait(c, &request_, begun_, bytes));                                                \
  } while (0)
#define POST(call) POST_BYTES(0, call)

/* Wait for all ranks before bytes are moved: it may take long, and is no time for polling. */
static int meet(struct comm *c)
{
  POST(MPI_Ibarrier(c->state->world, &request_));
  return OK;
}

static MPI_Datatype unit_type(struct comm *c, size_t unit)
{
  MPI_Datatype type;
  pthread_mutex_lock(&c->state->mpi);
  MPI_Type_contiguous((int)unit, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  pthread_mutex_unlock(&c->state->mpi);
  return type;
}

static void unit_free(struct comm *c, MPI_Datatype *type)
{
  pthread_mutex_lock(&c->state->mpi);
  MPI_Type_free(type);
  pthread_mutex_unlock(&c->state->mpi);
}

static gidx starts_of(const idx *counts, int size, int *starts)
{
  gidx sum = 0;
  for (int r = 0; r < size; r++) {
    starts[r] = (int)sum;
    sum += counts[r];
  }
  return sum;
}

void comm_share(gidx n, int size, int rank, gidx *first, gidx *count)
{
  gidx each = n / size, more = n % size;
  *first = each * rank + (rank < more ? rank : more);
  *count = each + (rank < more);
}

int comm_gather_all(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all)
{
  int *starts = calloc((size_t)c->size, sizeof *starts);
  CHECK(starts, ERR_MEMORY, "cannot allocate %d offsets", c->size);
  gidx total = starts_of(counts, c->size, starts);
  char *place = (char *)all + (size_t)starts[c->rank] * unit;
  if (mine != place) memcpy(place, mine, (size_t)counts[c->rank] * unit);
  if (c->size > 1) {
    MPI_Datatype type = unit_type(c, unit);
    TRY(meet(c));
    POST_BYTES((double)unit * (double)total,
               MPI_Iallgatherv(MPI_IN_PLACE, 0, type, all, counts, starts, type, c->state->world,
                               &request_));
    unit_free(c, &type);
  }
  c->bytes += (double)unit * (double)(total - counts[c->rank]);
  free(starts);
  return OK;
}

int comm_gather(struct comm *c, const void *mine, const idx *counts, size_t unit, void *all)
{
  int *starts = malloc((size_t)c->size * sizeof *starts);
  CHECK(starts, ERR_MEMORY, "cannot allocate %d offsets", c->size);
  gidx total = starts_of(counts, c->size, starts);
  if (c->rank == 0 && mine != all) memcpy(all, mine, (size_t)counts[0] * unit);
  if (c->size > 1) {
    MPI_Datatype type = unit_type(c, unit);
    const void *from = c->rank == 0 ? MPI_IN_PLACE : mine;
    TRY(meet(c));
    POST_BYTES((double)unit * (double)total,
               MPI_Igatherv(from, counts[c->rank], type, all, counts, starts, type, 0,
                            c->state->world, &request_));
    unit_free(c, &type);
  }
  if (c->rank == 0) c->bytes += (double)unit * (double)(total - counts[0]);
  free(starts);
  return OK;
}

int comm_exchange(struct comm *c, const void *mine, const idx *send_counts, void *theirs,
                  const idx *recv_counts, size_t unit)
{
  int *starts = malloc(2 * (size_t)c->size * sizeof *starts);
  CHECK(starts, ERR_MEMORY, "cannot allocate %d offsets", 2 * c->size);
  gidx sent = starts_of(send_counts, c->size, starts);
  gidx total = starts_of(recv_counts, c->size, starts + c->size);
  if (c->size == 1) {
    memcpy(theirs, mine, (size_t)send_counts[0] * unit);
  } else {
    MPI_Datatype type = unit_type(c, unit);
    TRY(meet(c));
    POST_BYTES((double)unit * (double)(sent + total),
               MPI_Ialltoallv(mine, send_counts, starts, type, theirs, recv_counts,
                              starts + c->size, type, c->state->world, &request_));
    unit_free(c, &type);
  }
  c->bytes += (double)unit * (double)(total - recv_counts[c->rank]);
  free(starts);
  return OK;
}

int comm_broadcast(struct comm *c, void *items, gidx count, size_t unit)
{
  if (c->size == 1 || count == 0) return OK;
  MPI_Datatype type = unit_type(c, unit);
  TRY(meet(c));
  POST_BYTES((double)unit * (double)count,
             MPI_Ibcast(items, (int)count, type, 0, c->state->world, &request_));
  unit_free(c, &type);
  if (c->rank) c->bytes += (double)unit * (double)count;
  return OK;
}

int comm_sum(struct comm *c, gidx *values, gidx count)
{
  if (c->size == 1) return OK;
  const gidx most = 1 << 24;
  TRY(meet(c));
  for (gidx first = 0; first < count; first += most) {
    int part = (int)(count - first < most ? count - first : most);
    POST_BYTES(4.0 * (double)part * sizeof *values, /* it moves them twice and adds */
               MPI_Iallreduce(MPI_IN_PLACE, values + first, part, MPI_INT64_T, MPI_SUM,
                              c->state->world, &request_));
  }
  return OK;
}

int comm_collect(struct comm *c, gidx value, gidx *values)
{
  POST(MPI_Iallgather(&value, 1, MPI_INT64_T, values, 1, MPI_INT64_T, c->state->world, &request_));
  return OK;
}

int comm_collect_real(struct comm *c, double value, double *values)
{
  POST(MPI_Iallgather(&value, 1, MPI_DOUBLE, values, 1, MPI_DOUBLE, c->state->world, &request_));
  return OK;
}

int comm_agree_at(struct comm *c, int status, gidx key)
{
  if (c->size == 1) {
    c->agreed = status != OK;
    return status;
  }
  struct {
    gidx code, key;
  } mine = {status, key}, *all = malloc((size_t)c->size * sizeof *all);
  CHECK(all, ERR_MEMORY, "cannot allocate %d statuses", c->size);
  POST(MPI_Iallgather(&mine, 2, MPI_INT64_T, all, 2, MPI_INT64_T, c->state->world, &request_));
  int worst = -1;
  for (int r = 0; r < c->size; r++)
    if (all[r].code && (worst < 0 || all[r].key < all[worst].key)) worst = r;
  int code = worst < 0 ? OK : (int)all[worst].code;
  free(all);
  if (worst < 0) return OK;
  char message[2048];
  strncpy(message, status_message(), sizeof message - 1);
  message[sizeof message - 1] = '\0';
  POST(MPI_Ibcast(message, sizeof message, MPI_CHAR, worst, c->state->world, &request_));
  c->agreed = 1;
  return status_set(code, message);
}

int comm_agree(struct comm *c, int status)
{
  return comm_agree_at(c, status, 0);
}

int comm_close(struct comm *c)
{
  struct comm_state *s = c->state;
  if (!s) return OK;
  if (c->size > 1) POST(MPI_Ibarrier(s->world, &request_));
  watch_end(s);
  TRY_MPI(MPI_Comm_free(&s->ring));
  TRY_MPI(MPI_Comm_free(&s->world));
  TRY_MPI(MPI_Finalize());
  pthread_mutex_destroy(&s->mpi);
  free(s);
  c->state = NULL;
  return OK;
}

void comm_abort(struct comm *c, int code)
{
  if (c->state) MPI_Abort(MPI_COMM_WORLD, code);
  _exit(code);
}
