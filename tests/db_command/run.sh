#!/bin/sh
# kkttune db from the outside: exit codes, what is printed, what is left on the disk.
set -u
program=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0

# expect CODE TEXT ARGUMENT...: the command's exit code and a piece of its output.
expect() {
    code=$1 text=$2
    shift 2
    output=$("$program" db "$@" 2>&1)
    got=$?
    if [ "$got" -ne "$code" ]; then
        echo "db $*: exit $got, not $code: $output"
        failed=1
    fi
    case $output in
    *"$text"*) ;;
    *)
        echo "db $*: '$text' is not in: $output"
        failed=1
        ;;
    esac
}

absent() {
    if [ -e "$1" ]; then
        echo "$1 was left behind"
        failed=1
    fi
}

row='"kernel":"kkt_solve","style":"materialized","problem":"tokens=64","config":"chunk=16"'
{
    echo '{"schema":"kkttune.recording/1","arch":"sm90","device":"h200"}'
    echo '{"provenance":0,"compiler":"nvrtc 13.0","gpu":"NVIDIA H200"}'
    echo "{\"p\":0,$row,\"build\":{\"outcome\":\"compiled\"},\"run\":{\"outcome\":\"ok\",\"time_us\":5.5,\"sample_count\":2,\"samples_us\":[5.25,5.75]}}"
    echo '{"rows":1}'
} >good.jsonl
head -n 3 good.jsonl >cut.jsonl

expect 2 "there is no database 'kkttune.db'" info
absent kkttune.db
expect 2 "recording 'cut.jsonl', line 3" import cut.jsonl
absent kkttune.db
expect 2 "cannot open 'none.jsonl'" import new.db none.jsonl
absent new.db
sed 's/"provenance":0,/&"kernel_hash":"deadbeef-no-hash",/' good.jsonl >hash.jsonl
expect 2 "line 2: 'kernel_hash' is not 64 hex digits" import hash.jsonl
absent kkttune.db
expect 0 "1 rows, 1 of them new" import good.jsonl
expect 0 "1 rows, 0 of them new" import kkttune.db good.jsonl
expect 2 "recording 'cut.jsonl', line 3: the file is truncated" import cut.jsonl
expect 0 "replayed 1" info
expect 0 '"samples":	2' info --json
expect 0 "kkttune.db: sound" check
expect 1 "no measured rows match" export --arch sm90 -o out.jsonl
absent out.jsonl
expect 0 "out.jsonl: 1 rows" export --arch sm90 --replayed -o out.jsonl
expect 0 "0 of them new" import --db kkttune.db out.jsonl
expect 3 "cannot write" export --arch sm90 --replayed -o no/such/folder.jsonl
expect 2 "known: sm" export --arch sm7 -o out.jsonl
expect 2 "-o is missing" export --arch sm90
expect 0 "added 1 candidates" merge kkttune.db other.db
expect 0 "added 0 candidates, 0 predictions, 0 builds, 0 runs" merge kkttune.db other.db
expect 2 "there is no database 'none.db'" merge none.db fresh.db
absent fresh.db
expect 2 "give two files" merge kkttune.db
expect 0 "recovered 1 candidates" recover other.db saved.db
expect 2 "'saved.db' exists" recover other.db saved.db
# Names of another program's are no damage, but are told of.
sed 's/"kernel":"kkt_solve"/"kernel":"zz"/' good.jsonl >names.jsonl
expect 0 "1 of 1 candidates have names that this kkttune does not know" import names.db names.jsonl
expect 0 "(the first: kernel 'zz', style 'materialized')" check names.db
sed 's/chunk=16/chunk=48/' good.jsonl >value.jsonl
expect 0 "2 of 2 candidates have names" import names.db value.jsonl
expect 0 "names.db: sound" check names.db
expect 0 "'chunk' cannot be '48'" import value.db value.jsonl
# Another program's device, too: no table is of it.
sed 's/"device":"h200"/"device":"h999"/' good.jsonl >device.jsonl
expect 0 "1 of 1 candidates have names that this kkttune does not know" import device.db device.jsonl
expect 0 "(the first: architecture 'sm90', device 'h999')" check device.db
expect 0 "device.db: sound" check device.db
expect 2 "given twice" info kkttune.db --db other.db
expect 2 "unknown action 'frob'" frob
expect 2 "needs ACTION"
echo text >text.db
expect 2 "not a kkttune database" check text.db

# A page of zeros in the middle: found, said where to go, and the rest is saved.
dd if=/dev/zero of=other.db bs=4096 seek=8 count=1 conv=notrunc 2>/dev/null
expect 1 "kkttune db recover other.db NEW" check other.db
case $output in *"?"* | *"***"*)
    echo "check prints what SQLite meant for a page of its own: $output"
    failed=1
    ;;
esac
expect 0 "recovered" recover other.db rest.db
expect 0 "rest.db: sound" check rest.db
# The page that names the tables: check says so itself and does not send people to check.
cp rest.db schema.db
dd if=/dev/zero of=schema.db bs=1 seek=100 count=3996 conv=notrunc 2>/dev/null
expect 2 "database 'schema.db' is damaged: " check schema.db
case $output in *"db check"*)
    echo "check sends to check: $output"
    failed=1
    ;;
esac
absent rest.db-wal
absent kkttune.db-wal
exit $failed
