/* SPDX-License-Identifier: BSD-3-Clause
 * One process: it gathers its own items, and its sums are its own values. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct mpi_window {
  void *base;
  MPI_Aint bytes;
  int unit;
};

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *level)
{
  (void)argc, (void)argv;
  *level = wanted;
  return MPI_SUCCESS;
}

int MPI_Finalize(void)
{
  return MPI_SUCCESS;
}

int MPI_Abort(MPI_Comm comm, int code)
{
  (void)comm;
  _exit(code);
}

int MPI_Error_string(int error, char *text, int *length)
{
  *length = snprintf(text, MPI_MAX_ERROR_STRING, "error %d, and this build has no MPI", error);
  return MPI_SUCCESS;
}

int MPI_Get_library_version(char *text, int *length)
{
  *length = snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "none");
  return MPI_SUCCESS;
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
  (void)comm, (void)handler;
  return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
  (void)comm;
  *rank = 0;
  return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
  *size = comm;
  return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *other)
{
  *other = comm;
  return MPI_SUCCESS;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part)
{
  (void)color, (void)key;
  return MPI_Comm_dup(comm, part);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
  (void)type, (void)key, (void)info;
  return MPI_Comm_dup(comm, part);
}

int MPI_Comm_free(MPI_Comm *comm)
{
  *comm = 0;
  return MPI_SUCCESS;
}

int MPI_Type_contiguous(int count, MPI_Datatype of, MPI_Datatype *type)
{
  *type = count * of;
  return MPI_SUCCESS;
}

int MPI_Type_create_struct(int count, const int *lengths, const MPI_Aint *places,
                           const MPI_Datatype *types, MPI_Datatype *type)
{
  (void)count, (void)lengths, (void)places, (void)types;
  *type = 0;
  return MPI_ERR_OTHER;
}

int MPI_Type_create_hindexed_block(int count, int length, const MPI_Aint *places, MPI_Datatype of,
                                   MPI_Datatype *type)
{
  (void)count, (void)length, (void)places, (void)of;
  *type = 0;
  return MPI_ERR_OTHER;
}

int MPI_Type_commit(MPI_Datatype *type)
{
  (void)type;
  return MPI_SUCCESS;
}

int MPI_Type_free(MPI_Datatype *type)
{
  *type = 0;
  return MPI_SUCCESS;
}

int MPI_Get_address(const void *at, MPI_Aint *address)
{
  *address = (MPI_Aint)at;
  return MPI_SUCCESS;
}

static int posted(MPI_Request *request)
{
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
  (void)comm;
  return posted(request);
}

int MPI_Ibcast(void *items, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request)
{
  (void)items, (void)count, (void)type, (void)comm;
  posted(request);
  return root ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int MPI_Iallreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
  (void)op;
  return MPI_Iallgather(mine, count, type, all, count, type, comm, request);
}

int MPI_Iallgather(const void *mine, int count, MPI_Datatype type, void *all, int each,
                   MPI_Datatype all_type, MPI_Comm comm, MPI_Request *request)
{
  (void)each, (void)all_type, (void)comm;
  if (mine != MPI_IN_PLACE) memmove(all, mine, (size_t)count * (size_t)type);
  return posted(request);
}

int MPI_Iallgatherv(const void *mine, int count, MPI_Datatype type, void *all, const int *counts,
                    const int *starts, MPI_Datatype all_type, MPI_Comm comm, MPI_Request *request)
{
  char *place = (char *)all + (size_t)starts[0] * (size_t)all_type;
  return MPI_Iallgather(mine, count, type, place, counts[0], all_type, comm, request);
}

int MPI_Ialltoallw(const void *mine, const int *counts, const int *starts,
                   const MPI_Datatype *types, void *theirs, const int *their_counts,
                   const int *their_starts, const MPI_Datatype *their_types, MPI_Comm comm,
                   MPI_Request *request)
{
  (void)their_counts, (void)their_types;
  return MPI_Iallgather((const char *)mine + starts[0], counts[0], types[0],
                        (char *)theirs + their_starts[0], 0, 0, comm, request);
}

int MPI_Isend(const void *items, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
  (void)items, (void)count, (void)type, (void)to, (void)tag, (void)comm;
  posted(request);
  return MPI_ERR_OTHER;
}

int MPI_Irecv(void *items, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
  return MPI_Isend(items, count, type, from, tag, comm, request);
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
  (void)request, (void)status;
  *done = 1;
  return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request *request)
{
  return posted(request);
}

int MPI_Request_free(MPI_Request *request)
{
  return posted(request);
}

int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base,
                            MPI_Win *window)
{
  (void)info, (void)comm;
  MPI_Win w = *window = calloc(1, sizeof *w);
  if (!w) return MPI_ERR_OTHER;
  *w = (struct mpi_window){.bytes = bytes, .unit = unit};
  w->base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(void **)base = w->base;
  return w->base == MAP_FAILED ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int MPI_Win_shared_query(MPI_Win window, int rank, MPI_Aint *bytes, int *unit, void *base)
{
  (void)rank;
  *bytes = window->bytes;
  *unit = window->unit;
  *(void **)base = window->base;
  return MPI_SUCCESS;
}

int MPI_Win_get_attr(MPI_Win window, int key, void *value, int *has)
{
  static int model = MPI_WIN_UNIFIED;
  (void)window;
  *has = key == MPI_WIN_MODEL;
  *(int **)value = &model;
  return MPI_SUCCESS;
}

int MPI_Win_set_errhandler(MPI_Win window, MPI_Errhandler handler)
{
  (void)window, (void)handler;
  return MPI_SUCCESS;
}

int MPI_Win_lock_all(int assert, MPI_Win window)
{
  (void)assert, (void)window;
  return MPI_SUCCESS;
}

int MPI_Win_unlock_all(MPI_Win window)
{
  (void)window;
  return MPI_SUCCESS;
}

int MPI_Win_sync(MPI_Win window)
{
  (void)window;
  __sync_synchronize();
  return MPI_SUCCESS;
}

int MPI_Win_free(MPI_Win *window)
{
  munmap((*window)->base, (size_t)(*window)->bytes);
  free(*window);
  *window = NULL;
  return MPI_SUCCESS;
}
