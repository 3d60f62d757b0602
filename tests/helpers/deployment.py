"""A real federation on loopback: SuperLink and SuperNodes as processes of their own, bounded in time, ended by pid."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

BIN = Path(sys.executable).parent
WAIT = 240  # seconds, at most, for anything


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def family(pid: int) -> list[int]:
    """Return descriptors of a process and all its descendants, parents first: a descriptor never means another one."""
    try:
        members = [os.pidfd_open(pid)]
        found = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except (ProcessLookupError, FileNotFoundError):
        return []
    return members + [each for child in " ".join(found).split() for each in family(int(child))]


def send(member: int, sign: int) -> None:
    """Send a signal to a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(member, sign)


def hidden(folders: Sequence[Path], command: Sequence[object]) -> list[object]:
    """Return a command that sees these folders empty, in a mount namespace of its own, where such can be made."""
    for spaces in (["unshare", "-m"], ["unshare", "-rm"]):
        trial = [*spaces, "mount", "-t", "tmpfs", "none", "/mnt"]
        if folders and subprocess.run(trial, capture_output=True, check=False, timeout=20).returncode == 0:
            script = 'while [ "$1" != -- ]; do mount -t tmpfs none "$1" || exit 9; shift; done; shift; exec "$@"'
            return [*spaces, "sh", "-c", script, "sh", *folders, "--", *command]
    if folders:
        warnings.warn("no mount namespace can be made here: the nodes could read each other's folders", stacklevel=2)
    return list(command)


class Deployment:
    """An exported app with its processes; `log` holds what each wrote."""

    def __init__(self, app: Path, *, keys: Path | None = None) -> None:
        self.app, self.keys, self.port = app, keys, free_port()
        self.home, self.logs = app.parent / "home", app.parent / "logs"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.home.mkdir(exist_ok=True)
        self.logs.mkdir(exist_ok=True)
        secure = f'root-certificates = "{keys}/ca.pem"' if keys else "insecure = true"
        text = f'[superlink]\ndefault = "trial"\n[superlink.trial]\naddress = "127.0.0.1:{self.port}"\n{secure}\n'
        (self.home / "config.toml").write_text(text)

    @property
    def environment(self) -> dict[str, str]:
        """Environment of every process: no telemetry, no installation, a home of its own, one thread."""
        quiet = dict.fromkeys(
            ("FLWR_DISABLE_UPDATE_CHECK", "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION", "OMP_NUM_THREADS"), "1"
        )
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, **quiet, "FLWR_TELEMETRY_ENABLED": "0", "FLWR_HOME": str(self.home), "PATH": path}

    def start(self, name: str, command: Sequence[object], *, cwd: Path | None = None, **more: str) -> None:
        """Start a process in a session of its own, perhaps in a folder of its own."""
        with (self.logs / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                list(map(str, command)), cwd=cwd or self.app, env=self.environment | more, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def superlink(self) -> None:
        """Start the SuperLink and wait until it listens."""
        keys = ["--keys", self.keys] if self.keys else []
        self.start("superlink", ["./start-superlink.sh", "--port", self.port, *keys])
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.2)
        raise TimeoutError(self.log("superlink"))

    def supernode(self, client: int, *options: object) -> None:
        """Start the SuperNode of a client."""
        keys = ["--keys", self.keys] if self.keys else []
        place = self.app.parent / f"state-{client}"
        self.start(
            f"node{client}",
            ["./start-supernode.sh", client, "--superlink", f"127.0.0.1:{self.port}", "--port", free_port(),
             "--state", place, *keys, *options],
            FLWR_HOME=str(place / "flwr"),
        )  # fmt: skip

    def private_supernode(self, name: str, home: Path, *options: object, hide: Sequence[Path] = ()) -> None:
        """Start the SuperNode of a private node in its own folder; in its view the folders to hide are empty."""
        keys = ["--keys", self.keys] if self.keys else []
        command = [
            self.app / "start-supernode.sh", name, "--superlink", f"127.0.0.1:{self.port}", "--port", free_port(),
            "--state", home / "state", *keys, *options,
        ]  # fmt: skip
        (home / "state").mkdir(exist_ok=True)
        self.start(name, hidden(hide, command), cwd=home, FLWR_HOME=str(home / "state" / "flwr"))

    def flwr(self, *command: object, timeout: float = WAIT) -> subprocess.CompletedProcess[str]:
        """Run Flower's command line to its end."""
        return subprocess.run(
            [str(BIN / "flwr"), *map(str, command)], cwd=self.app, env=self.environment, capture_output=True, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip

    def submit(self, out: Path, timeout: float = 600.0) -> None:
        """Have the app run, and do not wait for its end."""
        done = self.flwr("run", ".", "trial", "--run-config", f"out='{out}' timeout={timeout}")
        assert done.returncode == 0, done.stdout + done.stderr + self.everything()

    def wait_until(self, so: Callable[[], bool], seconds: float = WAIT) -> None:
        """Wait until something is so."""
        end = time.monotonic() + seconds
        while not so():
            if time.monotonic() > end:
                raise TimeoutError(self.everything())
            time.sleep(0.1)

    def wait_for_end(self, name: str, seconds: float = WAIT) -> int:
        """Wait until a process has ended of itself, and return its exit code."""
        code = self.processes[name].wait(seconds)
        del self.processes[name]
        return code

    def halt(self, name: str) -> None:
        """Have a process and all it started stand still, without an end."""
        for each in family(self.processes[name].pid):
            send(each, signal.SIGSTOP)
            os.close(each)

    def kill(self, name: str, sign: int = signal.SIGKILL) -> None:
        """End a process and all it started."""
        process = self.processes.pop(name)
        members = family(process.pid)
        for each in members:
            send(each, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        for each in members:  # a SuperLink's own children are in sessions of their own, and outlive it for a while
            send(each, signal.SIGKILL)
            os.close(each)
        process.wait(20)

    def log(self, name: str) -> str:
        """Return what a process wrote."""
        path = self.logs / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def everything(self) -> str:
        """Return the end of what all wrote."""
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in self.logs.iterdir())


@contextlib.contextmanager
def deployed(app: Path, *, keys: Path | None = None) -> Iterator[Deployment]:
    """Give a deployment with nothing started yet; at the end nothing of it is left."""
    made = Deployment(app, keys=keys)
    try:
        yield made
    finally:
        for name in list(made.processes):
            made.kill(name, signal.SIGTERM)
