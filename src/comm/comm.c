/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a communicator, from the start of MPI to its end; and how a rank waits: it spins
 * briefly, then sleeps for longer and longer times. */
#include "comm/comm.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/watchdog.h"
#include "comm/launcher.h"
#include "comm/mpi_impl.h"

/* A nap is about a tenth of the time waited so far, but stays between these limits. */
enum { SPINS = 200, MIN_NAP_NS = 20000, MAX_NAP_NS = 2000000 };
#define NAP_GROWTH 1.1
/* Bytes per second.  A message that moves more slowly is tested with naps of about the shortest
 * length in between. */
#define SLOW_LINK 1e8

int mpi_fail(int error, const char *file, int line)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  return status_fail(ERR_COMM, file, line, "MPI failed: %s", text);
}

/* A single process does without three services of Open MPI 4, unless the user's environment asks
 * for them: a daemon, which has hung at its own end; a session folder, which all single processes
 * of a user would share and delete for each other; and the search for fast networks, which takes
 * 0.2 s. */
static void singleton_prepare(void)
{
  if (!launcher_is_none()) return;
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
  setenv("OMPI_MCA_pml", "ob1", 0);
}

/* Set the number and rank among the processes of this machine. */
static int node_count(struct comm *c)
{
  MPI_Comm node;
  TRY_MPI(MPI_Comm_split_type(c->state->world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  TRY_MPI(MPI_Comm_rank(node, &c->local_rank));
  TRY_MPI(MPI_Comm_size(node, &c->local_size));
  TRY_MPI(MPI_Comm_free(&node));
  return OK;
}

/* Open MPI's text is "Open MPI v4.1.4, package: ...", MPICH's "MPICH Version:\t4.1\n...". */
void comm_library(char *text, size_t capacity)
{
  char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(whole, &length);
  size_t used = 0;
  for (const char *at = whole; *at && !strchr(",\n", *at) && used + 1 < capacity; at++) {
    int is_noise = strchr(" \t", *at) ? used && text[used - 1] == ' ' : *at == ':';
    int is_prefix = *at == 'v' && used && text[used - 1] == ' ';
    if (!is_noise && !is_prefix) text[used++] = *at == '\t' ? ' ' : *at;
  }
  text[used] = '\0';
}

/* Signals of launchers and schedulers are blocked until MPI has started: mpirun of Open MPI 4 may
 * hang if a rank ends while it registers ("PMIX ERROR UNREACHABLE").  Threads that MPI starts
 * inherit the blocked signals, so that these signals come to our threads. */
static int mpi_init(int *level)
{
  static const int sent[] = {SIGTERM, SIGUSR1, SIGUSR2};
  sigset_t later, before;
  sigemptyset(&later);
  for (int i = 0; i < LENGTH(sent); i++) sigaddset(&later, sent[i]);
  pthread_sigmask(SIG_BLOCK, &later, &before);
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, level);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

/* The program of the Python wheel for one process (comm/alone) has no MPI. */
static int has_mpi(void)
{
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  comm_library(library, sizeof library);
  return strcmp(library, "none") != 0;
}

static int mpi_start(void)
{
  int level = 0;
  singleton_prepare();
  TRY_MPI(mpi_init(&level));
  TRY_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CHECK(level >= MPI_THREAD_SERIALIZED, ERR_COMM,
        "this MPI does not let two threads take turns in calling it");
  return OK;
}

int comm_scratch_alloc(struct comm_scratch *s, int ranks)
{
  size_t n = (size_t)ranks;
  *s = (struct comm_scratch){malloc(3 * n * sizeof *s->numbers), malloc(4 * n * sizeof *s->ints),
                             malloc(2 * n * sizeof *s->types), malloc(n * sizeof *s->requests),
                             malloc(n * sizeof *s->bytes)};
  CHECK(s->numbers && s->ints && s->types && s->requests && s->bytes, ERR_MEMORY,
        "cannot allocate a communicator of %d ranks", ranks);
  return OK;
}

void comm_scratch_free(struct comm_scratch *s)
{
  free(s->numbers);
  free(s->ints);
  free(s->types);
  free(s->requests);
  free(s->bytes);
}

gidx *comm_work(const struct comm *c)
{
  return c->state->scratch.numbers;
}

static int ranks_connect(struct comm *c)
{
  struct comm_state *s = c->state;
  TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &s->world));
  TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &s->ring));
  TRY_MPI(MPI_Comm_rank(s->world, &c->rank));
  TRY_MPI(MPI_Comm_size(s->world, &c->size));
  TRY(comm_scratch_alloc(&s->scratch, c->size));
  return node_count(c);
}

/* From here on send signs of life, and expect the peer's. */
static int signs_start(struct comm *c)
{
  struct comm_state *s = c->state;
  if (c->size == 1) return OK;
  s->watch = (struct watch){.ring = s->ring, .mpi = s->mpi, .rank = c->rank, .size = c->size};
  return watch_start(&s->watch);
}

int comm_open(struct comm *c)
{
  *c = (struct comm){.size = 1, .local_size = 1};
  int step = watchdog_begin(ERR_COMM, "waiting for all ranks to start", NULL);
  int status = mpi_start();
  watchdog_end(step);
  TRY(status);
  struct comm_state *s = c->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate the communicator");
  s->mpi = &s->own;
  pthread_mutex_init(s->mpi, NULL);
  step = watchdog_begin(ERR_COMM, "connecting the ranks", NULL);
  status = ranks_connect(c);
  watchdog_end(step);
  TRY(status);
  TRY(launcher_check(c->size, has_mpi()));
  return signs_start(c);
}

void comm_pause(int turn)
{
  if (turn < SPINS) {
    sched_yield();
    return;
  }
  double nap = MIN_NAP_NS;
  for (int i = SPINS; i < turn && nap < MAX_NAP_NS; i++) nap *= NAP_GROWTH;
  struct timespec time = {0, (long)nap};
  nanosleep(&time, NULL);
}

int mpi_wait(struct comm *c, MPI_Request *request, double begun, double bytes)
{
  struct comm_state *s = c->state;
  double until = begun + bytes / SLOW_LINK;
  for (int turn = 0;;) {
    int done = 0;
    pthread_mutex_lock(s->mpi);
    int error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(s->mpi);
    if (error) return comm_lose(c, mpi_fail(error, __FILE__, __LINE__));
    if (done) break;
    comm_pause(turn);
    if (bytes == 0 || (turn <= SPINS && log_seconds() > until)) turn++;
  }
  c->seconds += log_seconds() - begun;
  return OK;
}

static int mpi_end(struct comm_state *s)
{
  watch_end(&s->watch);
  TRY_MPI(MPI_Comm_free(&s->ring));
  TRY_MPI(MPI_Comm_free(&s->world));
  TRY_MPI(MPI_Finalize());
  return OK;
}

int comm_close(struct comm *c)
{
  struct comm_state *s = c->state;
  if (!s) return OK;
  if (c->size > 1) watchdog_ending();
  if (c->size > 1) POST(MPI_Ibarrier(s->world, &request_));
  int step = watchdog_begin(ERR_COMM, "waiting for all ranks to end", NULL);
  int status = mpi_end(s);
  watchdog_end(step);
  TRY(status);
  pthread_mutex_destroy(s->mpi);
  comm_scratch_free(&s->scratch);
  free(s);
  c->state = NULL;
  return OK;
}

/* MPI_Comm_split blocks while this thread holds the mutex, so the thread of the signs of life
 * cannot call MPI.  All ranks meet first, which makes the wait short. */
static int ranks_split(struct comm *c, int number, struct comm *part)
{
  struct comm_state *s = part->state;
  pthread_mutex_lock(s->mpi);
  int error = MPI_Comm_split(c->state->world, number, c->rank, &s->world);
  if (!error) error = MPI_Comm_rank(s->world, &part->rank);
  if (!error) error = MPI_Comm_size(s->world, &part->size);
  pthread_mutex_unlock(s->mpi);
  TRY_MPI(error);
  return OK;
}

/* Allocate the state of a part of at most `ranks` ranks. */
static int part_alloc(struct comm *part, int ranks)
{
  part->state = calloc(1, sizeof *part->state);
  CHECK(part->state, ERR_MEMORY, "cannot allocate a communicator");
  return comm_scratch_alloc(&part->state->scratch, ranks);
}

int comm_split(struct comm *c, int number, struct comm *part)
{
  *part = (struct comm){.size = 1, .local_rank = c->local_rank, .local_size = c->local_size};
  TRY(comm_agree(c, part_alloc(part, c->size)));
  part->state->mpi = c->state->mpi;
  comm_failure_part(part, c, 0);
  POST(MPI_Ibarrier(c->state->world, &request_));
  int step = watchdog_begin(ERR_COMM, "dividing the ranks", NULL);
  int status = ranks_split(c, number, part);
  watchdog_end(step);
  return status;
}

int comm_alone(struct comm *c, struct comm *part)
{
  TRY(comm_split(c, c->rank, part));
  comm_failure_part(part, c, 1);
  return OK;
}

int comm_unite(struct comm *c, struct comm *part)
{
  if (!part->state) return OK;
  POST(MPI_Ibarrier(c->state->world, &request_));
  pthread_mutex_lock(c->state->mpi);
  int error = MPI_Comm_free(&part->state->world);
  pthread_mutex_unlock(c->state->mpi);
  TRY_MPI(error);
  c->seconds += part->seconds;
  c->bytes += part->bytes;
  c->calls += part->calls;
  comm_scratch_free(&part->state->scratch);
  free(part->state);
  *part = (struct comm){0};
  return OK;
}

void comm_abort(struct comm *c, int code)
{
  if (c->state) MPI_Abort(MPI_COMM_WORLD, code);
  _exit(code);
}
