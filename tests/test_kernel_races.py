# SPDX-License-Identifier: BSD-3-Clause
"""Claim: threads of attention_few and of dense_factor do not race for shared memory, in any order.
ThreadSanitizer checks this on a CPU.  If a barrier is left out, it reports a race.  A panel of a
factor has the bits of plain loops.  Needs no GPU."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

from tap import FULL, SOURCE, claim, done_testing, ok, skip_all

COMPILERS = ("clang++", "clang++-14", "g++")
FLAGS = ("-std=c++17", "-O1", "-ffp-contract=off", "-fsanitize=thread", "-w", "-D__CUDACC__",
         "-DCELLS=0", "-DSUMS=0", "-x", "c++")
# Replacements for code that a CPU cannot assemble.
REPLACED = (
    (r'asm volatile\("bar\.sync.*;', "named_sync(half + 1, WALK_THREADS / 2);"),
    (r'asm\("cvt\.f32\.f16.*;', "out = 0; /* of f16 */"),
    (r'asm\("(max|min)\.NaN\.f32.*;', r"out = a != a || b != b ? NAN : f\1f(a, b);"),
    (r'asm\("rsqrt.approx.*;', "y = (float)(1 / sqrt(x));"),
    (r'asm\("rcp.approx.*;', "y = (float)(1 / x);"),
    (r"extern __shared__", "extern"),
)
# A form gives the columns of keys and of values, whether there is a soft cap, the number of rows
# and the number of stages.  The forms: one for which racecheck once printed a warning, and odd
# numbers of columns; with CHECK_FULL=1 also one with a cap, and one with wide heads.
NAMES = ("HEAD_D", "HEAD_DV", "CAPPED", "FEW", "STAGES")
FORMS = [(64, 64, 0, 2, 1), (17, 5, 0, 4, 4)] + FULL * [(128, 128, 1, 8, 2), (160, 200, 0, 1, 1)]
DENSE = "dense"  # stands for dense_factor, which has no form
TOOL_ALONE = "a race checker would not see"  # marks a barrier without which nothing races


def replaced(text):
    for pattern, by in REPLACED:
        text = re.sub(pattern, by, text)
    return text


def kernel_of(form):
    return f"{SOURCE}/kernels/" + ("dense_factor.cu" if form == DENSE else "attention_few.cu")


def kernels_make(folder, form, left_out=None):
    """Write the kernels' texts for a CPU.  left_out: a line of the kernel that is removed."""
    os.makedirs(folder)
    for path in glob.glob(f"{SOURCE}/kernels/*.h") + [kernel_of(form)]:
        lines = open(path, encoding="utf-8").read().split("\n")
        if path.endswith(".cu") and left_out is not None:
            lines[left_out] = ";"
        with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as file:
            file.write(replaced("\n".join(lines)))


def compiled(compiler, folder, form):
    program = os.path.join(folder, "program")
    defines = [f"-D{name}={value}" for name, value in zip(NAMES, form) if form != DENSE]
    name = "kernel_dense.cu" if form == DENSE else "kernel_few.cu"
    made = subprocess.run([compiler, *FLAGS, *defines, f"-I{folder}", f"-I{SOURCE}/tests",
                           f"{SOURCE}/tests/{name}", "-o", program],
                          capture_output=True, text=True, timeout=200)
    ok(made.returncode == 0, f"{form} compiles: {made.stderr[-300:]}")
    return program


def run(program, backward):
    """(races, hash).  Without a barrier, threads may wait for each other for ever."""
    try:
        done = subprocess.run([program, str(backward)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "TSAN_OPTIONS": "halt_on_error=0"})
    except subprocess.TimeoutExpired:
        return -1, None
    return done.stderr.count("WARNING: ThreadSanitizer: data race"), done.stdout


def compiler_find(folder):
    """The first compiler that has ThreadSanitizer with fibres."""
    source, program = os.path.join(folder, "try.cc"), os.path.join(folder, "try")
    with open(source, "w", encoding="utf-8") as file:
        file.write('extern "C" void *__tsan_create_fiber(unsigned);\n'
                   "int main() { return !__tsan_create_fiber(0); }\n")
    for name in filter(shutil.which, COMPILERS):
        made = subprocess.run([name, "-fsanitize=thread", source, "-o", program],
                              capture_output=True, text=True, timeout=100)
        if made.returncode == 0 and subprocess.run([program], timeout=20).returncode == 0:
            return name
    skip_all("no C++ compiler here has ThreadSanitizer")


def barriers_find(form):
    """The lines of a kernel that have a barrier."""
    lines = open(kernel_of(form), encoding="utf-8").read().split("\n")
    return [(i, line.strip()) for i, line in enumerate(lines)
            if re.match(r"\s+(__syncthreads|__syncwarp|half_sync)\(", line)]


with tempfile.TemporaryDirectory() as scratch:
    CXX = compiler_find(scratch)
    with claim("no two threads of a kernel access a value without a barrier between them"):
        for at, form in enumerate(FORMS + [DENSE]):
            place = os.path.join(scratch, f"form{at}")
            kernels_make(place, form)
            program = compiled(CXX, place, form)
            forward, backward = run(program, 0), run(program, 1)
            ok(forward[0] == backward[0] == 0, f"{form}: {forward[0]} and {backward[0]} races")
            ok(forward[1] and forward == backward, f"{form}: {forward[1]}, {backward[1]}")
            ok(form != DENSE or forward[1] == "differ 0\n", f"beside plain loops: {forward[1]}")
    with claim("if a barrier is left out, a race is reported"):
        for form, least in (FORMS[0], 8), (DENSE, 2):
            barriers = barriers_find(form)
            ok(len(barriers) >= least, f"{form}: {len(barriers)} barriers")
            for at, line in barriers if FULL else barriers[::3]:
                place = os.path.join(scratch, f"without{form}{at}")
                kernels_make(place, form, at)
                races, found = run(compiled(CXX, place, form), 0)
                wanted = TOOL_ALONE not in line
                ok((races != 0 or not found) == wanted, f"{form}, line {at + 1}, {line}: {races}")
done_testing()
