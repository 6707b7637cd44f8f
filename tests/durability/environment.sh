#!/usr/bin/env bash
# What the machine can do to a run: a full disk, a folder that may only be read, a database that is
# locked, damaged, another program's or of another version, a truncated recording, names that look
# like paths. Each gets one clear line and its exit code, and nothing is left half-written.
# shellcheck source=tests/cli/lib.sh
KKTTUNE_PROGRAM=$(readlink -f "$KKTTUNE_PROGRAM")
. "$(dirname "$0")/../cli/lib.sh"

main=(tune gdn_wu --arch sm90 --problem "tokens=8192,heads_k=2,heads_v=8" --cache cache
    --backend fake:seed=4 --budget "evals=40")
exports=(kkttune_sm90.json kkttune_sm90.h report_sm90.html report_sm90.md)

# fails CODE TEXT COMMAND...: exit code CODE; the last line of standard error holds TEXT, and it is
# the only one that is not progress.
fails() {
    local wanted=$1 text=$2
    shift 2
    try "$@"
    [ "$code" -eq "$wanted" ] || die "$*: exit code $wanted was expected"
    has "$(tail -n 1 <<<"$err")" "kkttune: "
    has "$(tail -n 1 <<<"$err")" "$text"
    [ "$(grep -vcE '^[a-z]+ [0-9]+ of [0-9]+|^fake backend|^$' <<<"$err")" -eq 1 ] ||
        die "$*: one line of error was expected"
}

# whole FOLDER REFERENCE: every file in FOLDER is one of the exports and complete.
whole() {
    local file
    for file in "$1"/*; do
        [ -e "$file" ] || continue
        cmp -s "$file" "$2/${file##*/}" || die "$file is torn, or left over"
    done
}

"$kkttune" "${main[@]}" --db whole.db --out whole >/dev/null 2>&1 || die "the undisturbed run failed"
for name in "${exports[@]}"; do
    [ -s "whole/$name" ] || die "$name is missing"
done

# Locked all the while: the run waits, then says by whom. Its 30 s pass while the rest is tested.
cp whole.db locked.db
: >holder
: >moment
python3 -c 'import sqlite3, time
db = sqlite3.connect("locked.db", isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(600)' >holder 2>/dev/null &
holder=$!
trap 'kill "$holder" 2>/dev/null; rm -rf "$work"' EXIT
until grep -q locked holder; do sleep 0.05; done
(
    begun=$SECONDS ended=0
    "$kkttune" "${main[@]}" --db locked.db --out locked >locked.out 2>locked.err </dev/null || ended=$?
    echo "$ended $((SECONDS - begun))" >locked.code
) &
waiting=$!

# Locked for a moment: waited for.
cp whole.db busy.db
python3 -c 'import sqlite3, time
db = sqlite3.connect("busy.db", isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(1)' >moment &
until grep -q locked moment; do sleep 0.02; done
expect 0 "${main[@]}" --db busy.db --out busy
whole busy whole

# ---- full disks: a limit on the size of files, and a small file system where one can be had ----
limited() { # limited KIBIBYTES COMMAND...: SIGXFSZ is ignored, so that writing fails instead
    bash -c 'trap "" XFSZ; ulimit -f "$0"; exec "$@"' "$@"
}
mkdir full
fails 3 "what was committed before is safe" limited 200 "$kkttune" "${main[@]}" --db full/k.db --out full/out
whole full/out whole
expect 0 db check full/k.db
expect 0 "${main[@]}" --db full/k.db --out full/out # goes on from there
whole full/out whole
[ "$(find full/out -type f | wc -l)" -ge 4 ] || die "exports are missing after the disk had room"

# Room for the database and some of the exports, not for the largest.
cp -r whole later
cp whole.db later.db
size=$(($(stat -c %s whole/report_sm90.html) / 1024 - 4))
fails 3 "later/report_sm90.html': File too large" limited "$size" "$kkttune" "${main[@]}" --db later.db --out later
whole later whole
[ "$(find later -type f | wc -l)" -eq "$(find whole -type f | wc -l)" ] || die "files came or went"

cat >small.sh <<'SCRIPT'
mount -t tmpfs -o size=400k none small || exit 77
"$@" --db small/k.db --out small/out >small.out 2>small.err </dev/null
echo $? >small.code
cp -r small/. kept
SCRIPT
mkdir small kept
if unshare -rm bash small.sh "$kkttune" "${main[@]}" 2>/dev/null; then
    [ "$(cat small.code)" -eq 3 ] || die "a full file system gave $(cat small.code): $(cat small.err)"
    has "$(tail -n 1 small.err)" "o space left"
    [ ! -d kept/out ] || whole kept/out whole
    expect 0 "${main[@]}" --db kept/k.db --out kept/out
    whole kept/out whole
fi

# ---- folders and files that may only be read ----
if [ "$(id -u)" -eq 0 ]; then
    chmod 755 . && cp "$kkttune" other && chmod 755 other
    as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups "$work/other")
else
    as_other=("$kkttune")
fi
mkdir -m 555 sealed
mkdir -m 777 open
cp whole.db sealed/k.db && chmod 444 sealed/k.db
fails 3 "cannot write to folder 'sealed'" "${as_other[@]}" "${main[@]}" --db open/k.db --out sealed
[ -z "$(ls open)" ] || die "work was done before --out was checked"
fails 3 "sealed/new.db" "${as_other[@]}" "${main[@]}" --db sealed/new.db --out open/out
fails 3 "sealed/k.db" "${as_other[@]}" "${main[@]}" --db sealed/k.db --out open/out
[ "$(ls sealed)" = k.db ] || die "a sealed folder has changed"
[ -z "$(ls open/out 2>/dev/null)" ] || die "exports of a run that could not begin"
chmod 755 sealed

# ---- databases that are none, or not ours to change ----
untouched() { # untouched FILE CODE TEXT: refused, and the same bytes as before
    cp "$1" before
    fails "$2" "$3" "$kkttune" "${main[@]}" --db "$1" --out refused
    cmp -s before "$1" || die "$1 was changed"
    [ -z "$(ls refused 2>/dev/null)" ] || die "exports of a refused database"
}
echo "not a database" >text.db
untouched text.db 2 "is not a kkttune database"
head -c 5000 whole.db >cut.db
untouched cut.db 2 "cut.db"
python3 -c 'import sqlite3
sqlite3.connect("theirs.db").execute("CREATE TABLE theirs (x)")
db = sqlite3.connect("newer.db")
db.execute("PRAGMA application_id=1802204276")
db.execute("PRAGMA user_version=99")
db.execute("CREATE TABLE later (x)")
db.commit()'
untouched theirs.db 2 "of another program"
untouched newer.db 2 "has schema version 99"
fails 2 "not a regular file" "$kkttune" "${main[@]}" --db . --out refused

# Damaged pages: the run ends with what to do, the rest is saved, and a run goes on from it.
cp whole.db damaged.db
python3 - <<'PYTHON'
import sqlite3
db = sqlite3.connect("damaged.db")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.execute("PRAGMA journal_mode=DELETE")
size = db.execute("PRAGMA page_size").fetchone()[0]
roots = [row[0] for row in db.execute("SELECT rootpage FROM sqlite_schema WHERE name IN ('candidates_by_configuration', 'runs')")]
db.close()
with open("damaged.db", "r+b") as file:
    for page in roots:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)
PYTHON
fails 2 "kkttune db recover" "$kkttune" "${main[@]}" --db damaged.db --out refused
[ -z "$(ls refused 2>/dev/null)" ] || die "exports of a damaged database"
expect 1 db check damaged.db
expect 0 db recover damaged.db saved.db
expect 0 db check saved.db
expect 0 "${main[@]}" --db saved.db --out saved
whole saved whole

# ---- a truncated recording among the references ----
mkdir reference
expect 0 db export whole.db --arch sm90 -o reference/a.jsonl
replay=(tune gdn_wu --arch sm90 --backend replay --budget seconds=1 --cache cache)
lines=$(wc -l <reference/a.jsonl)
head -n 10 reference/a.jsonl | head -c -20 >reference/b.jsonl
KKTTUNE_REFERENCE=$work/reference fails 2 "reference/b.jsonl" "$kkttune" "${replay[@]}" --db replayed.db --out refused
has "$err" "line 10"
has "$err" "put the file back as it was, or take it out of its folder"
# The shipped ones are found beside the program and named without detours.
mkdir -p moved/bin moved/share/kkttune/reference
cp "$kkttune" moved/bin/
cp reference/b.jsonl moved/share/kkttune/reference/
fails 2 "'$work/moved/share/kkttune/reference/b.jsonl'" moved/bin/kkttune "${replay[@]}" --db moved.db --out refused
rm reference/a.jsonl
KKTTUNE_REFERENCE=$work/reference fails 2 "line 10" "$kkttune" "${replay[@]}" --db alone.db --out refused
[ ! -e alone.db ] || die "a refused recording left a database"
[ "$lines" -gt 10 ] || die "the recording is too short for this test"

# ---- names that look like paths are names ----
{
    echo '{"schema":"kkttune.recording/1","arch":"sm90","device":"../../device"}'
    echo '{"provenance":0,"compiler":"nvrtc 13.0","gpu":"/etc/gpu"}'
    echo '{"p":0,"kernel":"../../../kernel","style":"/tmp/style","problem":"a=../../x","config":"b=/y","build":{"outcome":"compiled"},"run":{"outcome":"ok","time_us":5.5,"sample_count":1,"samples_us":[5.5]}}'
    echo '{"rows":1}'
} >paths.jsonl
mkdir inner && cd inner || exit 1
expect 0 db import ../paths.jsonl
for action in report export; do
    try "$kkttune" "$action" --arch sm90 --out out
    [ "$code" -le 2 ] || die "$action: exit code $code"
done
expect 0 "${main[@]}" --out out
others=$(find . ! -name 'kkttune.db*' ! -path './out*' ! -path './cache*' ! -name .)
[ -z "$others" ] || die "files appeared: $others"
others=$(find out -type f ! -name 'kkttune_*.h' ! -name kkttune_sm90.json ! -name 'report_sm90.*')
[ -z "$others" ] || die "files appeared: $others"
cd .. || exit 1

# ---- the run that waited ----
wait "$waiting"
read -r code seconds <locked.code
out=$(cat locked.out) err=$(cat locked.err)
[ "$code" -eq 3 ] || die "a locked database"
[ "$seconds" -ge 25 ] || die "it waited for $seconds s only"
has "$(tail -n 1 <<<"$err")" "locked by process $holder (python3"
[ -z "$(ls locked 2>/dev/null)" ] || die "exports of a run that could not begin"
