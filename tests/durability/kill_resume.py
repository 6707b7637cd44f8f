"""Kills a run on the fake backend with SIGKILL at random moments and resumes it; see kill_resume.sh.

After every kill: the database opens and is sound; of the measurements that the backend says it made,
all but the one in flight (of finalists: the one group) are stored; no candidate was measured twice;
whatever export exists is complete; no process is left over. When a run ends by itself: the same
exports, byte for byte, and the same winners as a run that nobody disturbed.
"""
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

EVALS = 60
GROUP = 7  # finalists that are re-timed together, and stored together: two of them a library's
EXPORTS = ("kkttune_sm90.json", "kkttune_sm90.h", "report_sm90.html", "report_sm90.md")


class Run:
    """One start of the program; `made` counts what its backend measured ('m' or 'r' each)."""

    def __init__(self, program, folder, sleep_us):
        self.folder = folder
        self.pipe, told = os.pipe()
        os.set_blocking(self.pipe, False)
        backend = f"fake:seed=11,sleep_us={sleep_us},tell={told}"
        self.process = subprocess.Popen(
            [program, "tune", "kkt_solve", "--arch", "sm90", "--backend", backend, "--problem",
             "tokens=8192,heads_k=2,heads_v=8", "--budget", f"evals={EVALS}", "--json",
             "--db", "k.db", "--out", "out", "--cache", "cache"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(told,),
            start_new_session=True)
        os.close(told)

    def await_exports(self):
        """Until it begins to write them, or has ended."""
        out = os.path.join(self.folder, "out")
        while self.process.poll() is None and not (os.path.isdir(out) and os.listdir(out)):
            time.sleep(0.0005)

    def finish(self, seconds):
        """True where it ended by itself within `seconds`, else it is killed."""
        try:
            self.out, self.err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.out, self.err = self.process.communicate()
        told = bytearray()
        while piece := self.read():
            told += piece
        os.close(self.pipe)
        self.made = {kind: told.count(kind.encode()) for kind in "mr"}
        self.killed = self.process.returncode == -signal.SIGKILL
        if not self.killed:
            assert self.process.returncode == 0, (self.process.returncode, self.err.decode())
        self.expect_no_leftovers()
        return not self.killed

    def read(self):
        try:
            return os.read(self.pipe, 65536)
        except BlockingIOError:
            return b""

    def expect_no_leftovers(self):
        for _ in range(100):
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        raise AssertionError("a process outlived the killed run by 5 s")


def stored(folder):
    """Runs in the database by kind: of candidates and a library's calls ('m'; of the calls alone
    'library'), and of finalists again ('r'). None measures what another one did already."""
    path = os.path.join(folder, "k.db")
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return {"m": 0, "r": 0, "library": 0}
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = db.execute("SELECT b.candidate_id, r.policy LIKE '%finalist=1%', "
                      "max(g.style = 'library'), count(*) FROM runs r "
                      "JOIN builds b ON b.id = r.build_id "
                      "JOIN candidates c ON c.id = b.candidate_id "
                      "JOIN configurations g ON g.id = c.configuration_id GROUP BY 1, 2").fetchall()
    db.close()
    assert all(count == 1 for *_, count in rows), f"measured twice: {rows}"
    finalists = sum(finalist for _, finalist, *_ in rows)
    return {"m": len(rows) - finalists, "r": finalists,
            "library": sum(library and not finalist for _, finalist, library, _ in rows)}


def expect_sound(program, folder):
    path = os.path.join(folder, "k.db")
    if not os.path.exists(path):
        return
    check = subprocess.run([program, "db", "check", path], capture_output=True, text=True)
    empty = check.returncode == 2 and "is empty" in check.stderr
    assert empty or (check.returncode == 0 and "sound" in check.stdout), check


def exports(folder):
    found = {}
    for name in EXPORTS:
        path = os.path.join(folder, "out", name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                found[name] = file.read()
    return found


def files(folder):
    return sorted(os.listdir(os.path.join(folder, "out")))


class Tally:
    kills = campaigns = lost = lost_groups = early = in_export = reused = 0


def campaign(program, folder, whole, duration, rng, tally, done):
    """Kills and resumes until a run ends by itself; false where time was up before."""
    os.mkdir(folder)
    before = {"m": 0, "r": 0, "library": 0}
    while not done():
        sleep_us = rng.choice((0, 500, 3000))
        run = Run(program, folder, sleep_us)
        aimed = rng.random() < 0.2  # at the moments in which exports are written
        if aimed:
            run.await_exports()
        longest = 0.02 if aimed else 1.5 * duration + 1e-6 * sleep_us * EVALS
        ended = run.finish(rng.uniform(0, longest))
        tally.kills += run.killed
        expect_sound(program, folder)
        after = stored(folder)
        lost = {kind: before[kind] + run.made[kind] - after[kind] for kind in "mr"}
        assert 0 <= lost["m"] <= 1 and 0 <= lost["r"] <= GROUP, (lost, run.made, before, after)
        assert not (ended and any(lost.values())), lost
        tally.lost += lost["m"]
        tally.lost_groups += lost["r"] > 0
        tally.early += run.killed and not any(after.values())
        here = exports(folder)
        tally.in_export += run.killed and bool(here)
        assert all(whole["exports"][name] == data for name, data in here.items()), "a torn export"
        if ended:
            answer = json.loads(run.out)
            counts = answer["candidates"]
            assert here == whole["exports"], "the exports differ from an undisturbed run's"
            assert files(folder) == whole["files"], "a temporary file is left"
            assert answer["best"] == whole["answer"]["best"], "the winners differ"
            candidates = before["m"] - before["library"]  # calls of a library are none
            assert counts["reused"] == candidates, (counts, before)
            assert counts["reused"] + counts["measured"] + counts["noisy"] == EVALS, counts
            tally.reused += counts["reused"]
            tally.campaigns += 1
            return
        before = after


def main():
    program, work, kills, seconds, seed = sys.argv[1:]
    kills, seconds, rng = int(kills), float(seconds), random.Random(int(seed))
    start = time.monotonic()
    folder = os.path.join(work, "whole")
    os.mkdir(folder)
    run = Run(program, folder, 0)
    assert run.finish(600)
    duration = time.monotonic() - start
    whole = {"answer": json.loads(run.out), "exports": exports(folder),
             "files": files(folder)}
    assert len(whole["exports"]) == len(EXPORTS), whole["files"]
    assert run.made == {kind: stored(folder)[kind] for kind in "mr"}, run.made
    tally = Tally()

    def done():
        return tally.kills >= kills or (seconds > 0 and time.monotonic() - start > seconds)

    number = 0
    while not done():
        number += 1
        folder = os.path.join(work, f"campaign-{number}")
        campaign(program, folder, whole, duration, rng, tally, done)
    assert tally.kills > 0 and (tally.campaigns > 0 or seconds > 0), "nothing was tried"
    print(f"kill_resume: {tally.kills} kills (seed {seed}), {tally.campaigns} resumed runs ended like "
          f"the undisturbed one ({EVALS} candidates, {duration:.2f} s); measurements lost in "
          f"flight: {tally.lost}, groups of finalists: {tally.lost_groups}, stored ones lost: 0, "
          f"repeated: 0; killed before the first result: {tally.early}, with exports there: "
          f"{tally.in_export}; {time.monotonic() - start:.0f} s")


main()
