#!/bin/sh
# Claim: make install installs everything that make installcheck looks for, and make installcheck
# notices a file that is missing.  The modulefile sets the paths.  Every recipe has the version.
[ -z "$EMULATOR" ] || { echo '1..0 # SKIP make installcheck does not use the emulator'; exit 0; }
build=${builddir:-.}
source=$(cd "${srcdir:-.}" && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
. "$source/scripts/tap.sh"

make_it() # TARGET
{
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$build" V=0 DESTDIR="$work/root" "$1" \
    > "$work/$1.log" 2>&1
}
explain()
{
  sed 's/^/#   /' "$1" | tail -n 20
}

claim_begin 'make install installs what make installcheck looks for'
make_it install
claim_check $? 'make install' || explain "$work/install.log"
make_it installcheck
whole=$?
claim_check $whole 'make installcheck'
[ $whole -eq 0 ] || explain "$work/installcheck.log"
grep -q '^installcheck: Sagitta .* is whole' "$work/installcheck.log"
claim_check $? 'make installcheck says that all is there'

claim_begin 'make installcheck notices a missing file'
for name in sagitta sagitta-encode.1 results.py CITATION.cff; do
  find "$work/root" -type f -name "$name" ! -path '*bash-completion*' > "$work/found"
  if [ ! -s "$work/found" ]; then
    case $name in
      *.1) claim_skip 'man pages are made by help2man, which is not installed' ;;
      *) claim_check 1 "make install installs $name" ;;
    esac
    continue
  fi
  file=$(head -n 1 "$work/found")
  mv "$file" "$work/away"
  make_it installcheck && got=0 || got=1
  [ "$whole$got" = 01 ]
  claim_check $? "make installcheck fails without $name"
  mv "$work/away" "$file"
done

claim_begin 'the modulefile puts the program, its pages and the Python package in the paths'
module=$(find "$work/root" -path '*/modulefiles/sagitta/*' -type f)
claim_check "$([ -n "$module" ]; echo $?)" 'there is a modulefile'
if command -v tclsh > /dev/null; then
  cat > "$work/stub.tcl" <<'EOF'
proc module-whatis {text} {}
proc conflict {name} {}
proc prepend-path {name path} { puts "$name $path" }
source [lindex $argv 0]
EOF
  tclsh "$work/stub.tcl" "$module" > "$work/paths"
  claim_check $? 'tclsh runs the modulefile'
  while read -r name path; do
    [ -d "$work/root$path" ]
    claim_check $? "the folder $path of $name exists"
  done < "$work/paths"
  claim_check "$([ "$(wc -l < "$work/paths")" -eq 3 ]; echo $?)" 'the modulefile sets three paths'
else
  claim_skip 'tclsh is not installed'
fi
claim_end
echo "1..$count"
exit $status
