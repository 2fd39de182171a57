/* SPDX-License-Identifier: BSD-3-Clause
 * The part of MPI that src/comm uses, for the program of the Python wheel that runs as one process,
 * without MPI.  Names and arguments are those of the standard.
 *
 * Floor: comm.  A type is its number of bytes, and each collective operation is complete when it is
 * posted.  Functions that one process never calls, such as messages to others, fail. */
#ifndef MPI_H
#define MPI_H

#include <stdint.h>

typedef int MPI_Comm, MPI_Request, MPI_Datatype, MPI_Op, MPI_Info, MPI_Errhandler, MPI_Status;
typedef intptr_t MPI_Aint;
typedef struct mpi_window *MPI_Win;

enum { MPI_SUCCESS, MPI_ERR_OTHER };
enum { MPI_COMM_WORLD = 1 };
enum { MPI_CHAR = 1, MPI_BYTE = 1, MPI_INT = 4, MPI_DOUBLE = 8, MPI_INT64_T = 8, MPI_UINT64_T = 8 };
enum { MPI_SUM, MPI_MAX, MPI_BOR };
enum { MPI_THREAD_SERIALIZED = 2, MPI_ERRORS_RETURN = 1, MPI_INFO_NULL = 0, MPI_REQUEST_NULL = 0 };
enum { MPI_COMM_TYPE_SHARED = 1, MPI_MODE_NOCHECK = 1, MPI_WIN_MODEL = 1, MPI_WIN_UNIFIED = 2 };
enum { MPI_MAX_ERROR_STRING = 128, MPI_MAX_LIBRARY_VERSION_STRING = 128 };
#define MPI_IN_PLACE ((void *)-1)
#define MPI_BOTTOM ((void *)0)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *level);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm comm, int code);
int MPI_Error_string(int error, char *text, int *length);
int MPI_Get_library_version(char *text, int *length);

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *other);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part);
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part);
int MPI_Comm_free(MPI_Comm *comm);

int MPI_Type_contiguous(int count, MPI_Datatype of, MPI_Datatype *type);
int MPI_Type_create_struct(int count, const int *lengths, const MPI_Aint *places,
                           const MPI_Datatype *types, MPI_Datatype *type);
int MPI_Type_create_hindexed_block(int count, int length, const MPI_Aint *places, MPI_Datatype of,
                                   MPI_Datatype *type);
int MPI_Type_commit(MPI_Datatype *type);
int MPI_Type_free(MPI_Datatype *type);
int MPI_Get_address(const void *at, MPI_Aint *address);

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
int MPI_Ibcast(void *items, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request);
int MPI_Iallreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request);
int MPI_Iallgather(const void *mine, int count, MPI_Datatype type, void *all, int each,
                   MPI_Datatype all_type, MPI_Comm comm, MPI_Request *request);
int MPI_Iallgatherv(const void *mine, int count, MPI_Datatype type, void *all, const int *counts,
                    const int *starts, MPI_Datatype all_type, MPI_Comm comm, MPI_Request *request);
int MPI_Ialltoallw(const void *mine, const int *counts, const int *starts,
                   const MPI_Datatype *types, void *theirs, const int *their_counts,
                   const int *their_starts, const MPI_Datatype *their_types, MPI_Comm comm,
                   MPI_Request *request);
int MPI_Isend(const void *items, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Irecv(void *items, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Test(MPI_Request *request, int *done, MPI_Status *status);
int MPI_Cancel(MPI_Request *request);
int MPI_Request_free(MPI_Request *request);

int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base,
                            MPI_Win *window);
int MPI_Win_shared_query(MPI_Win window, int rank, MPI_Aint *bytes, int *unit, void *base);
int MPI_Win_get_attr(MPI_Win window, int key, void *value, int *has);
int MPI_Win_set_errhandler(MPI_Win window, MPI_Errhandler handler);
int MPI_Win_lock_all(int assert, MPI_Win window);
int MPI_Win_unlock_all(MPI_Win window);
int MPI_Win_sync(MPI_Win window);
int MPI_Win_free(MPI_Win *window);

#endif
