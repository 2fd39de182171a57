# The instruction sets of x86-64 that the compiler can be told to use, for src/device/cpu/isa_*.c.
#
# SAGITTA_ISA sets AVX2_CFLAGS, AVX512_CFLAGS, VNNI_CFLAGS and AMX_CFLAGS, the conditionals ISA_AVX2
# to ISA_AMX, the macros HAVE_ISA_AVX2 to HAVE_ISA_AMX, HAVE_X86_FEATURES where a program can ask
# the processor for its sets, and the words isa_found for the summary.  On other processors no set
# is found, and only the portable unit is built.  With sanitizers, sets whose PRESENT is false on
# this processor are left out, too: their units take long to compile then.  A cross build keeps
# them.

# SAGITTA_ISA_SET(NAME, FLAGS, EXPRESSION, PRESENT): one set.  EXPRESSION uses its intrinsics, so it
# compiles only if the compiler knows the set.  PRESENT is true on a processor that has the set;
# that of AMX also on others with AVX-512.
AC_DEFUN([SAGITTA_ISA_SET], [
have_isa=no
AS_IF([test $have_x86_features = yes], [
  AC_MSG_CHECKING([whether $CC takes $2])
  isa_cflags=$CFLAGS
  CFLAGS="$CFLAGS -Werror $2"
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <immintrin.h>
void test(void *at);
void test(void *at) { $3; }]])], [have_isa=yes])
  AS_IF([test "$have_isa$enable_sanitizers" = yesyes],
    [AC_RUN_IFELSE([AC_LANG_PROGRAM([], [[return !($4);]])], [], [have_isa=no], [])])
  CFLAGS=$isa_cflags
  AC_MSG_RESULT([$have_isa])])
AS_IF([test $have_isa = yes], [
  AC_DEFINE([HAVE_ISA_$1], [1], [There are loops that are compiled with $2.])
  isa_found="$isa_found m4_tolower([$1])"])
AM_CONDITIONAL([ISA_$1], [test $have_isa = yes])
AC_SUBST([$1_CFLAGS], ["$2"])
])

AC_DEFUN([SAGITTA_ISA], [
isa_found=portable
have_x86_features=no
AC_MSG_CHECKING([whether a program can ask for instruction sets of x86-64])
AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <cpuid.h>
#include <sys/syscall.h>
#ifndef __x86_64__
#error not x86-64
#endif
int main(void)
{
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && __builtin_cpu_supports("avx512vnni") &&
         __builtin_cpu_is("amdfam19h") && SYS_arch_prctl;
}]])],
  [have_x86_features=yes
  AC_DEFINE([HAVE_X86_FEATURES], [1], [A program can ask the processor for its instruction sets.])])
AC_MSG_RESULT([$have_x86_features])
SAGITTA_ISA_SET([AVX2], [-mavx2 -mfma],
  [__m256d x = _mm256_loadu_pd(at); _mm256_storeu_pd(at, _mm256_fmadd_pd(x, x, x))],
  [__builtin_cpu_supports("avx2")])
SAGITTA_ISA_SET([AVX512], [-mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl],
  [*(int *)at = _mm512_movepi32_mask(_mm512_loadu_si512(at))],
  [__builtin_cpu_supports("avx512bw")])
SAGITTA_ISA_SET([VNNI], [-mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni],
  [__m512i x = _mm512_loadu_si512(at); _mm512_storeu_si512(at, _mm512_dpbusd_epi32(x, x, x))],
  [__builtin_cpu_supports("avx512vnni")])
SAGITTA_ISA_SET([AMX], [-mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mamx-tile -mamx-int8],
  [_tile_loadconfig(at); _tile_dpbssd(0, 1, 2)],
  [__builtin_cpu_supports("avx512bw")])
])
