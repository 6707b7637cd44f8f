#!/usr/bin/env bash
# Values reach SQL as bound parameters alone. Run in the source folder. Outside of db/ there is no
# SQL; inside, no text with a verb of SQL is a printf format, except where names of tables and
# columns, which are this program's own, are put in; nothing quotes a value (%q, %Q, '%s');
# sqlite3_exec is called in db/store.c alone. First tries itself on a file with one fault of each
# kind.
set -euo pipefail

verbs='(SELECT|INSERT|REPLACE|UPDATE|DELETE|PRAGMA|ALTER|DROP|CREATE|ATTACH|VALUES|WHERE)'

# The statements of db/store_recover.c over each table: what is put in are literals of that file and
# column names of the new, empty file.
allowed='^db/store_recover\.c:[0-9]+: *kkt_text_printf\(&sql, "(INSERT OR IGNORE INTO %s \(%s\) VALUES \(|SELECT rowid,%s FROM %s NOT INDEXED WHERE rowid (>|=) \?1)'

# Prints a line for each fault in the tree $1.
faults() (
    cd "$1"
    shopt -s nullglob
    folders=()
    for folder in base db model kernels tuner reports lib cli include; do
        [ ! -d "$folder" ] || folders+=("$folder")
    done
    sources=(grep -rnE --include='*.[ch]')
    "${sources[@]}" "printf *\\([^\"]*\"[^\"]*\\b$verbs\\b" "${folders[@]}" |
        grep -vE "$allowed" | sed 's/$/  <- SQL made by printf/' || true
    "${sources[@]}" 'sqlite3_(v?mprintf|v?snprintf)|%[qQw]["'"'"' ,)]' db |
        sed 's/$/  <- quoting instead of binding/' || true
    "${sources[@]}" "'%s'[^\"]*\\b$verbs\\b|=[ ]*'%s'" db |
        sed 's/$/  <- a value inside quotes/' || true
    "${sources[@]}" 'sqlite3_exec *\(' "${folders[@]}" | grep -v '^db/store\.c:' |
        sed 's/$/  <- sqlite3_exec outside of db\/store.c/' || true
    "${sources[@]}" 'kkt_text_(add|printf)[a-z_]*\(&?sql' "${folders[@]}" |
        grep -vE '^db/(store_recover|store_query)\.c:' |
        sed 's/$/  <- a statement put together outside of the files that may/' || true
)

self_test() {
    local tree found
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' RETURN
    mkdir -p "$tree/db" "$tree/cli"
    echo 'kkt_db_prepare(db, "SELECT id FROM runs WHERE id=?1", &s, err);' >"$tree/db/good.c"
    [ -z "$(faults "$tree")" ] || return 1
    cat >"$tree/db/bad.c" <<'CODE'
    snprintf(text, 99, "DELETE FROM runs WHERE id=%d", id);
    char *sql = sqlite3_mprintf("%Q", name);
    kkt_text_add(&sql, name);
    kkt_text_printf(&sql, "name = '%s'", name);
CODE
    echo '    sqlite3_exec(handle, text, NULL, NULL, NULL);' >"$tree/cli/bad.c"
    found=$(faults "$tree" | sed 's/.*<-//' | sort -u | wc -l)
    [ "$found" -eq 5 ]
}

self_test || {
    echo "the check does not find the faults it is made for"
    exit 1
}
found=$(faults "${1:-.}")
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    exit 1
fi
