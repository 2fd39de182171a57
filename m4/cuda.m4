# Find CUDA and NCCL for configure: a toolkit, or the wheels of a Python.
#
# SAGITTA_CUDA sets CUDA_CFLAGS, CUDA_LIBS, NCCL_CFLAGS, NCCL_LIBS, the words cuda_found and
# nccl_found for the summary, and the conditionals CUDA and NCCL.  Libraries are linked by their full
# name, because wheels have .so.13 and .so.2 names only.  NVRTC is opened by src/device/cuda/nvrtc.c,
# and found through DT_RPATH, as its builtins are.

# sagitta_library(FOLDER NAME VERSION): print the path of a library below FOLDER, or nothing.
m4_define([SAGITTA_FIND_LIBRARY], [
sagitta_library() {
  for sagitta_at in lib64 lib lib/x86_64-linux-gnu targets/x86_64-linux/lib; do
    for sagitta_end in so.$[]3 so; do
      if test -f "$[]1/$sagitta_at/lib$[]2.$sagitta_end"; then
        echo "$[]1/$sagitta_at/lib$[]2.$sagitta_end"
        return
      fi
    done
  done
}
# sagitta_rpath(LIBRARY...): print the linker options by which a program finds these libraries at
# run time.
sagitta_rpath() {
  for sagitta_at in "$[]@"; do
    case $sagitta_at in
      /usr/lib/*|/lib/*) ;;
      *) echo "-Wl,-rpath,`dirname "$sagitta_at"`" ;;
    esac
  done | sort -u | tr '\n' ' '
}
# sagitta_wheels(NAME): print where the Pythons of this machine could have a folder nvidia/NAME.
sagitta_wheels() {
  for sagitta_python in python3 "$PYTHON"; do
    $sagitta_python -c 'import sys
for p in sys.path: print(p + "/nvidia/$[]1")' 2> /dev/null
  done
}
])

AC_DEFUN([SAGITTA_CUDA], [
SAGITTA_FIND_LIBRARY
AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
    [CUDA 13 in DIR: a toolkit, or nvidia/cu13 of a Python's wheels (default: where there is one)])],
  [], [with_cuda=auto])
AC_ARG_WITH([nccl],
  [AS_HELP_STRING([--with-nccl@<:@=DIR@:>@], [NCCL 2 in DIR (default: beside CUDA, where there is one)])],
  [], [with_nccl=auto])
CUDA_CFLAGS= CUDA_LIBS= NCCL_CFLAGS= NCCL_LIBS= cuda_found=no nccl_found=no

AC_MSG_CHECKING([for CUDA])
case $with_cuda in
  no) sagitta_places= ;;
  yes|auto) sagitta_places="$CUDA_HOME $CUDA_PATH `dirname "\`command -v nvcc\`" 2> /dev/null`/..
    /usr/local/cuda /usr `sagitta_wheels cu13`" ;;
  *) sagitta_places=$with_cuda ;;
esac
sagitta_saved_libs=$LIBS sagitta_saved_flags=$CPPFLAGS
for sagitta_place in $sagitta_places; do
  test -f "$sagitta_place/include/nvrtc.h" || continue
  sagitta_place=`cd "$sagitta_place" && pwd`
  sagitta_rt=`sagitta_library "$sagitta_place" cudart 13`
  sagitta_jit=`sagitta_library "$sagitta_place" nvrtc 13`
  test -n "$sagitta_rt" && test -n "$sagitta_jit" || continue
  CUDA_CFLAGS="-isystem $sagitta_place/include"
  CUDA_LIBS="$sagitta_rt -Wl,--disable-new-dtags `sagitta_rpath "$sagitta_rt" "$sagitta_jit"`"
  CPPFLAGS="$sagitta_saved_flags $CUDA_CFLAGS" LIBS="$CUDA_LIBS $sagitta_jit $sagitta_saved_libs"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <cuda_runtime_api.h>
#include <nvrtc.h>
]], [[
  cudaLibrary_t library;
  cudaKernel_t kernel;
  int major, minor;
  return cudaLibraryLoadData(&library, 0, 0, 0, 0, 0, 0, 0) ||
         cudaLibraryGetKernel(&kernel, library, "k") || nvrtcVersion(&major, &minor);
]])], [cuda_found=$sagitta_place], [])
  test "x$cuda_found" = xno || break
done
CPPFLAGS=$sagitta_saved_flags LIBS=$sagitta_saved_libs
AC_MSG_RESULT([$cuda_found])
AS_IF([test "x$cuda_found" = xno], [
  CUDA_CFLAGS= CUDA_LIBS=
  AS_IF([test "x$with_cuda" != xno && test "x$with_cuda" != xauto],
    [AC_MSG_ERROR([--with-cuda: no CUDA 13 with headers and NVRTC in '$with_cuda'; see config.log (of wheels nvidia-cuda-runtime, -nvrtc and -crt are needed)])])])

AC_MSG_CHECKING([for NCCL])
case $with_nccl in
  no) sagitta_places= ;;
  yes|auto) sagitta_places="$cuda_found $cuda_found/../nccl /usr /usr/local `sagitta_wheels nccl`" ;;
  *) sagitta_places=$with_nccl ;;
esac
test "x$cuda_found" != xno || sagitta_places=
for sagitta_place in $sagitta_places; do
  test -f "$sagitta_place/include/nccl.h" || continue
  sagitta_nccl=`sagitta_library "$sagitta_place" nccl 2`
  test -n "$sagitta_nccl" || continue
  NCCL_CFLAGS="-isystem $sagitta_place/include"
  test "$sagitta_place" != /usr || NCCL_CFLAGS=
  NCCL_LIBS="$sagitta_nccl `sagitta_rpath "$sagitta_nccl"`"
  CPPFLAGS="$sagitta_saved_flags $CUDA_CFLAGS $NCCL_CFLAGS"
  LIBS="$NCCL_LIBS $CUDA_LIBS $sagitta_saved_libs"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <nccl.h>
]], [[
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id;
  config.blocking = 0;
  return ncclGetUniqueId(&id);
]])], [nccl_found=$sagitta_place], [])
  test "x$nccl_found" = xno || break
done
CPPFLAGS=$sagitta_saved_flags LIBS=$sagitta_saved_libs
AC_MSG_RESULT([$nccl_found])
AS_IF([test "x$nccl_found" = xno], [
  NCCL_CFLAGS= NCCL_LIBS=
  AS_IF([test "x$with_nccl" != xno && test "x$with_nccl" != xauto],
    [AC_MSG_ERROR([--with-nccl: no NCCL 2 in '$with_nccl', or no CUDA to go with it; see config.log (of wheels nvidia-cuda-crt and nvidia-cuda-cccl are needed too)])])])

AC_SUBST([CUDA_CFLAGS])
AC_SUBST([CUDA_LIBS])
AC_SUBST([NCCL_CFLAGS])
AC_SUBST([NCCL_LIBS])
AM_CONDITIONAL([CUDA], [test "x$cuda_found" != xno])
AM_CONDITIONAL([NCCL], [test "x$nccl_found" != xno])
])
