"""Runs a command on a terminal of its own; `--interrupt-at TEXT` presses Ctrl-C once TEXT was
written. Prints what the terminal got; ends with the command's exit code."""
import os, pty, sys, select, time
args = sys.argv[1:]
trigger = None
if args[0] == "--interrupt-at":
    trigger = args[1].encode()
    args = args[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(args[0], args)
seen = b""
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    ready, _, _ = select.select([fd], [], [], 1.0)
    if not ready:
        continue
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    seen += piece
    if trigger and trigger in seen:
        os.write(fd, b"\x03")
        trigger = None
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128)
