#!/usr/bin/env bash
# kkttune compare: verdicts by interval and limit, both spellings, JSON, and a JUnit report that stays
# well-formed whatever a database says.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 tune kkt_solve --arch sm90 --backend fake:seed=1 --problem tokens=8192 --budget evals=24 \
    --db 1.db --counters none

# The same results, but for their times: those of C = 16 are 10 % up, of 32 2 % up, of 64 20 % down.
cp 1.db 2.db
python3 - <<'END'
import sqlite3
db = sqlite3.connect("2.db")
for chunk, factor in ((16, 1.1), (32, 1.02), (64, 0.8)):
    db.execute("UPDATE runs SET time_us = time_us * ?1, time_low_us = time_low_us * ?1,"
               " time_high_us = time_high_us * ?1 WHERE build_id IN (SELECT b.id FROM builds b"
               " JOIN candidates c ON c.id = b.candidate_id"
               " JOIN configurations g ON g.id = c.configuration_id WHERE g.text LIKE ?2)",
               (factor, "%%chunk=%d,%%" % chunk))
db.commit()
END
expect 0 compare 1.db 1.db
has "$out" "4 same"
has "$out" "the limit is 3 %"
has "$out" "the same"
expect 0 --compare 1.db 1.db --fail-over 0
expect 1 compare 1.db 2.db
has "$out" "1 same, 1 faster, 1 slower, 1 regressed"
has "$err" "1 of 4 results of '1.db' regressed beyond 3 % in '2.db'"
expect 0 compare 1.db 2.db --fail-over 11%
expect 1 --compare 1.db 2.db --fail-over 1% --json --junit report.xml
json 'd["schema"] == "kkttune.compare/1" and d["failed"] and d["fail_over_percent"] == 1'
json '[(r["chunk"], r["verdict"]) for r in d["rows"]] == [
          (16, "regressed"), (32, "regressed"), (64, "faster"), (128, "same")]'
json 'all(abs(r["ratio"] - {16: 1.1, 32: 1.02, 64: 0.8, 128: 1}[r["chunk"]]) < 1e-9
          for r in d["rows"])'
json 'all(abs(r["ratio"] - r["b"]["time_us"]["median"] / r["a"]["time_us"]["median"]) < 1e-9
          for r in d["rows"])'
expect 1 compare 2.db 1.db --json # the other way around
json '[(r["chunk"], r["verdict"]) for r in d["rows"]] == [
          (16, "faster"), (32, "faster"), (64, "regressed"), (128, "same")]'

# Made-up times: compared, and said to be made up, where a database has no others. B has one of a GPU,
# slow, beside faster ones that are made up: it alone counts, whatever the fake backend made of the rest.
expect 0 compare 1.db 1.db
has "$out" "the comparison is of made-up times: 4 of A"
cp 1.db real.db
python3 - <<'END'
import sqlite3
db = sqlite3.connect("real.db")
db.execute("UPDATE runs SET gpu = 'NVIDIA H200', time_us = 5000, time_low_us = 4999, time_high_us = 5001"
           " WHERE id = (SELECT min(id) FROM runs WHERE outcome = 'ok')")
db.commit()
END
expect 1 compare 1.db real.db
has "$out" "made-up times of the fake backend in B are left out"
has "$out" "the comparison is of made-up times: 4 of A"
expect 1 compare 1.db real.db --json --junit made_up.xml
json '[r["b"]["time_us"]["median"] for r in d["rows"] if "b" in r] == [5000]'
json 'd["counts"]["absent"] == 3 and d["counts"]["regressed"] == 1 and d["made_up_left_out"]["b"] > 0'
json 'all(r["a"]["made_up"] for r in d["rows"]) and d["made_up_left_out"]["a"] == 0'
grep -q "left out" made_up.xml || die "the JUnit report does not say what was left out"
expect 0 compare real.db real.db
[[ $out != *"comparison is of made-up"* ]] || die "times of a GPU are called made up"

# Hostile names, a candidate that failed in B, and one that B never tried.
cp 1.db hostile.db
python3 - <<'END'
import sqlite3
def edit(path, *statements):
    db = sqlite3.connect(path)
    for text, values in statements:
        db.execute(text, values)
    db.commit()
    db.close()
name = '<script>alert("&\')</script>]]>\x01\x1b[31m'
rename = [("UPDATE %s SET kernel = ?" % table, (name,)) for table in ("problems", "configurations")]
edit("hostile.db", *rename, ("UPDATE problems SET text = CAST(x'613dfffe3d' AS TEXT)", ()))
db = sqlite3.connect("2.db")
db.execute("UPDATE runs SET outcome = 'crashed', time_us = NULL, time_low_us = NULL, time_high_us = NULL"
           " WHERE build_id IN (SELECT b.id FROM builds b JOIN candidates c ON c.id = b.candidate_id"
           " JOIN configurations g ON g.id = c.configuration_id WHERE g.text LIKE '%chunk=64,%')")
db.commit()
END
expect 1 compare 1.db 2.db --fail-over 1000 --junit report.xml --json
json '[r["verdict"] for r in d["rows"] if r["chunk"] == 64] == ["failed"]'
expect 0 compare 1.db hostile.db --junit hostile.xml
[[ $out != *$'\x1b'* && $out != *$'\x01'* ]] || die "control characters reached the terminal"
expect 0 compare hostile.db hostile.db --junit same.xml
if ! python3 - <<'END'
import xml.etree.ElementTree as tree
for name in ("report.xml", "hostile.xml", "same.xml"):
    root = tree.parse(name).getroot()
    cases = root.findall("./testsuite/testcase")
    assert root.tag == "testsuites" and int(root.get("tests")) == len(cases) > 0
    assert int(root.get("failures")) == len(root.findall(".//failure"))
    assert int(root.get("skipped")) == len(root.findall(".//skipped"))
assert tree.parse("report.xml").getroot().find(".//failure[@type='failed']") is not None
assert any('<script>alert("&\')</script>]]>??[31m' in case.get("classname")
           for case in tree.parse("same.xml").getroot().iter("testcase"))
assert tree.parse("hostile.xml").getroot().find(".//skipped") is not None
END
then
    die "a JUnit report is not what it should be"
fi

refuses 2 "no percentage" compare 1.db 2.db --fail-over -3%
refuses 2 "no percentage" compare 1.db 2.db --fail-over much
refuses 2 "needs A.db B.db" compare 1.db
refuses 2 "" compare 1.db no.db
echo "no database" >text.db
refuses 2 "text.db" compare text.db 1.db
refuses 3 "" compare 1.db 1.db --junit no/such/folder/report.xml
