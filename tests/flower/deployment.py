"""A real federation on loopback: SuperLink and SuperNodes as processes of their own, bounded in time, ended by pid."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

BIN = Path(sys.executable).parent
WAIT = 240  # seconds, at most, for anything


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


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

    def start(self, name: str, command: Sequence[object], **more: str) -> None:
        """Start a process in a session of its own."""
        with (self.logs / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                list(map(str, command)), cwd=self.app, env=self.environment | more, stdin=subprocess.DEVNULL,
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

    def flwr(self, *command: object, timeout: float = WAIT) -> subprocess.CompletedProcess[str]:
        """Run Flower's command line to its end."""
        return subprocess.run(
            [str(BIN / "flwr"), *map(str, command)], cwd=self.app, env=self.environment, capture_output=True, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip

    def wait_for(self, path: Path, text: str = "", seconds: float = WAIT) -> None:
        """Wait until a file is there and has some text."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if path.exists() and text in path.read_text():
                return
            time.sleep(0.2)
        raise TimeoutError(f"{path}: {self.everything()}")

    def kill(self, name: str, sign: int = signal.SIGKILL) -> None:
        """End a process and all it started."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
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
