#!/bin/sh
# Claim: configure refuses a launcher of another MPI than that of the headers, and says what to set.
# It accepts a launcher of the same MPI, and one that it does not know, such as srun.
source=$(cd "${srcdir:-.}" && pwd)
build=$(cd "${builddir:-.}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/scripts/tap.sh"
if [ ! -x "$build/config.status" ] || [ -f "$source/config.status" ]; then
  echo '1..0 # SKIP there is no configured build outside of the sources'
  exit 0
fi

# Make a launcher that prints these words as its version.
launcher() # NAME WORDS
{
  printf '#!/bin/sh\necho "%s"\n' "$2" > "$work/$1"
  chmod +x "$work/$1"
}
launcher openmpi 'mpirun (Open MPI) 4.1.4'
launcher mpich 'HYDRA build details:'
launcher other 'slurm 23.11'

# Configure with a launcher.  configure ends at its test of HDF5, because --with-hdf5 names nothing
# that exists.
configured() # NAME
{
  mkdir -p "$work/$1.build"
  (cd "$work/$1.build" && eval "'$source/configure'" "$("$build/config.status" --config)" \
    "MPIEXEC='$work/$1'" "--srcdir='$source'" --with-hdf5=no-such-hdf5) > "$work/$1.log" 2>&1
  grep 'headers and launcher are of one MPI' "$work/$1.log" | tail -n 1 | sed 's/^/# /'
}
refused() # NAME
{
  grep -q 'the headers are those of .*, and the launcher .* set MPIEXEC' "$work/$1.log"
}

claim_begin 'a launcher of another MPI is refused, and the message says what to set'
configured openmpi
configured mpich
refused openmpi && one=1 || one=0
refused mpich && two=1 || two=0
[ $((one + two)) -eq 1 ]
claim_check $? "of Open MPI and MPICH one is refused: $one and $two"
refused mpich && taken=openmpi || taken=mpich
grep -q 'no-such-hdf5' "$work/$taken.log"
claim_check $? "$taken is accepted, and configure reaches the next step"

claim_begin 'an unknown launcher is accepted'
configured other
! refused other && grep -q 'no-such-hdf5' "$work/other.log"
claim_check $? 'configure reaches the next step'

claim_begin 'if a requested ZeroMQ is missing, its package is named'
cat > "$work/pkg-config" <<'END'
#!/bin/sh
case "$*" in *libzmq*) exit 1 ;; esac
exec pkg-config "$@"
END
chmod +x "$work/pkg-config"
mkdir -p "$work/zmq.build"
(cd "$work/zmq.build" && eval "'$source/configure'" "$("$build/config.status" --config)" \
  "'PKG_CONFIG=$work/pkg-config'" "--srcdir='$source'" --with-zmq) > "$work/zmq.log" 2>&1
[ $? -ne 0 ] && grep -q 'no ZeroMQ 4.3 found: install libzmq3-dev' "$work/zmq.log"
claim_check $? "$(tail -n 1 "$work/zmq.log")"
claim_end
echo "1..$count"
exit $status
