"""The start scripts of an exported app: which flags they give to Flower, and when they refuse to."""

from __future__ import annotations

import os
import shutil
import ssl
import stat
import subprocess
from dataclasses import dataclass

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.common.config import parse_config_args

from fedrela.experiment.flower_app import export_flower
from fedrela.experiment.load import parse_config
from helpers.flower_federations import digits

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the scripts need bash")
SPY = """#!/bin/sh
echo "$0" | sed 's/.*[/]/program /'
printf 'word %s\\n' "$@"
echo "folder $PWD"
env | grep -E '^(FLWR|RAY)' | sed 's/^/set /'
"""
QUIET = {
    "FLWR_TELEMETRY_ENABLED=0", "FLWR_DISABLE_UPDATE_CHECK=1", "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1",
    "RAY_USAGE_STATS_ENABLED=0",
}  # fmt: skip
LINK = ["--host", "127.0.0.1", "--port", "9091", "--isolation", "subprocess"]
LINK += ["--disable-runtime-dependency-installation"]
ELSEWHERE = ["0.0.0.0", "10.0.0.7", "::", "127.0.0.1.example.org", "127.example.org", "localhost.example.org", ""]


@dataclass(frozen=True)
class Started:
    """What a script started, or why it did not."""

    code: int
    lines: list[str]
    err: str

    def get(self, kind):
        return [line.removeprefix(f"{kind} ") for line in self.lines if line.startswith(f"{kind} ")]

    def refusal(self):
        """Return the one line of a script that started nothing."""
        assert self.code == 2
        assert self.lines == []
        assert self.err.count("\n") == 1
        return self.err.rstrip("\n")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    config = digits(data={"partition": {"kind": "iid", "clients": 3}})
    return export_flower(config, tmp_path_factory.mktemp("exported") / "app")


@pytest.fixture
def app(exported, tmp_path):
    for name in ("flower-superlink", "flower-supernode"):
        spy = tmp_path / "bin" / name
        spy.parent.mkdir(exist_ok=True)
        spy.write_text(SPY)
        spy.chmod(0o755)
    return shutil.copytree(exported, tmp_path / "an app")


@pytest.fixture
def keys(app):
    """Return a folder with files of the right names."""
    folder = app / "keys"
    folder.mkdir()
    for name in ("ca.pem", "server.pem", "server.key", "node0", "node1"):
        (folder / name).touch()
    return folder


@pytest.fixture
def start(app, tmp_path):
    """Return a function that calls a script of the app from another folder, with spies in place of Flower."""

    def call(script, *words):
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("FLWR", "RAY"))}
        done = subprocess.run(
            [app / script, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
            env=plain | {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        )  # fmt: skip
        return Started(done.returncode, done.stdout.splitlines(), done.stderr)

    return call


def test_a_superlink_without_keys_listens_on_loopback_only(start, app):
    started = start("start-superlink.sh")
    assert started.get("program") == ["flower-superlink"]
    assert started.get("word") == [*LINK, "--insecure"]
    assert started.get("folder") == [str(app)], "what the run calls out is relative to it"
    assert set(started.get("set")) == QUIET


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_superlink_with_keys_speaks_tls_and_asks_for_node_keys(start, keys, host):
    words = start("start-superlink.sh", "--host", host, "--port", 9443).get("word")
    assert words == [
        "--host", host, "--port", "9443", *LINK[4:], "--enable-supernode-auth", "--ssl-ca-certfile", f"{keys}/ca.pem",
        "--ssl-certfile", f"{keys}/server.pem", "--ssl-keyfile", f"{keys}/server.key",
    ]  # fmt: skip


@pytest.mark.parametrize("host", ELSEWHERE)
def test_off_loopback_nothing_starts_without_keys_unless_that_is_typed(start, app, host):
    assert start("start-superlink.sh", "--host", host).refusal() == (
        f"start-superlink.sh: {host}: is not loopback, and {app}/keys has no certificate; make one, or type --insecure"
    )
    assert start("start-superlink.sh", "--host", host, "--insecure").get("word")[-1] == "--insecure"
    refusal = start("start-supernode.sh", 0, "--superlink", f"{host}:9091").refusal()
    assert f"start-supernode.sh: {host}:9091: is not loopback, and " in refusal
    assert "has no ca.pem; get it from the server, or type --insecure" in refusal
    assert start("start-supernode.sh", 0, "--superlink", f"{host}:9091", "--insecure").get("word")[-1] == "--insecure"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_on_loopback_trials_need_no_keys(start, host):
    assert start("start-superlink.sh", "--host", host).get("word")[-1] == "--insecure"
    assert start("start-supernode.sh", 0, "--superlink", f"{host}:9091").get("word")[-1] == "--insecure"


def test_typed_insecure_leaves_keys_alone(start, keys):
    assert start("start-superlink.sh", "--insecure").get("word") == [*LINK, "--insecure"]
    words = start("start-supernode.sh", 1, "--insecure").get("word")
    assert words[-1] == "--insecure"
    assert "--root-certificates" not in words


def test_a_supernode_says_which_client_it_is_and_where_its_state_is(start, app):
    started = start("start-supernode.sh", 2)
    assert started.get("program") == ["flower-supernode"]
    assert started.get("word") == [
        "--superlink", "127.0.0.1:9091", "--host", "127.0.0.1", "--port", "9102", "--node-config",
        f"partition-id=2 num-partitions=3 state-dir='{app}/state-2'", "--insecure",
    ]  # fmt: skip
    assert set(started.get("set")) == QUIET | {f"FLWR_HOME={app}/state-2/flwr"}
    assert stat.S_IMODE((app / "state-2").stat().st_mode) == 0o700


def test_a_supernode_with_keys_checks_the_server_and_signs(start, keys):
    words = start("start-supernode.sh", 1, "--superlink", "fl.example.org:9091").get("word")
    assert words[-4:] == ["--root-certificates", f"{keys}/ca.pem", "--auth-supernode-private-key", f"{keys}/node1"]
    assert "--insecure" not in words
    assert "/keys/node2: the private key of this node is missing" in start("start-supernode.sh", 2).refusal()


def test_a_folder_of_keys_that_is_named_must_have_them(start, tmp_path):
    for script in (["start-superlink.sh"], ["start-supernode.sh", 0]):
        assert f"{tmp_path}/typo: has no " in start(*script, "--keys", "typo").refusal()


def test_flower_understands_the_folder_of_the_state(start, tmp_path):
    for name in ('a "b" \\n $HOME', "c d=e f=1"):
        words = start("start-supernode.sh", 0, "--state", name).get("word")
        read = parse_config_args([words[words.index("--node-config") + 1]])
        assert read == {"partition-id": 0, "num-partitions": 3, "state-dir": str(tmp_path / name)}
    for name in ("it's", "two\nlines"):
        assert start("start-supernode.sh", 0, "--state", name).code == 2


@pytest.mark.parametrize("words", [[], ["x"], ["-1"], ["08"], ["3"], ["1;ls"], ["99999999999999999999"], [""]])
def test_a_supernode_needs_the_number_of_a_client(start, words):
    assert start("start-supernode.sh", *words).refusal().startswith("start-supernode.sh: ")


@pytest.mark.parametrize("script", [["start-superlink.sh"], ["start-supernode.sh", "0"]])
@pytest.mark.parametrize("words", [["--port"], ["--prot", "1"], ["--keys"], ["trial"]])
def test_wrong_flags_start_nothing(start, script, words):
    refusal = start(*script, *words).refusal()
    assert refusal.startswith(f"{script[0]}: ")
    assert words[0] in refusal


@pytest.fixture(scope="module")
def exported_private(tmp_path_factory):
    table = {"nodes": ["clinic-north", "clinic.south"], "classes": ["x", "y"], "columns": ["age"]}
    config = parse_config({"federation": table, "data": {"standardize": "local"}})
    return export_flower(config, tmp_path_factory.mktemp("private") / "app", private=True)


def test_a_private_supernode_gives_its_name_its_file_and_its_key(exported_private, app, start, tmp_path):
    shutil.copytree(exported_private, app, dirs_exist_ok=True)
    missing = f"{tmp_path}/node.toml: the node's own file is missing; name it with --data"
    assert start("start-supernode.sh", "clinic-north").refusal() == f"start-supernode.sh: {missing}"
    (tmp_path / "node.toml").touch()
    (tmp_path / "an own.toml").touch()
    words = start("start-supernode.sh", "clinic.south", "--data", "an own.toml").get("word")
    said = parse_config_args([words[words.index("--node-config") + 1]])
    place = {"name": "clinic.south", "data": f"{tmp_path}/an own.toml", "state-dir": f"{app}/state-clinic.south"}
    assert said == place
    assert words[words.index("--port") + 1] == "9101"
    (app / "keys").mkdir()
    for name in ("ca.pem", "clinic.south"):
        (app / "keys" / name).touch()
    words = start("start-supernode.sh", "clinic.south", "--superlink", "fl.example.org:9091").get("word")
    said = parse_config_args([words[words.index("--node-config") + 1]])
    assert said == place | {"data": f"{tmp_path}/node.toml", "key": f"{app}/keys/clinic.south"}
    assert words[-2:] == ["--auth-supernode-private-key", f"{app}/keys/clinic.south"]
    assert (
        "/keys/clinic-north: the private key of this node is missing"
        in start("start-supernode.sh", "clinic-north").refusal()
    )


@pytest.mark.parametrize("name", [[], ["clinic"], ["clinicXsouth"], ["0"], ["clinic-north clinic.south"], ["*"]])
def test_a_private_supernode_needs_a_name_of_the_roster(exported_private, app, start, name):
    shutil.copytree(exported_private, app, dirs_exist_ok=True)
    refusal = start("start-supernode.sh", *name).refusal()
    assert refusal.endswith("expected the node's name as first argument, one of clinic-north clinic.south")


@pytest.mark.skipif(
    not (shutil.which("openssl") and shutil.which("ssh-keygen")), reason="openssl and ssh-keygen make keys"
)
def test_trial_keys_are_readable_by_their_owner_only_and_make_a_tls_server(start, app):
    assert start("make-trial-keys.sh").code == 0
    folder = app / "keys"
    nodes = {name for node in range(3) for name in (f"node{node}", f"node{node}.pub")}
    assert {path.name for path in folder.iterdir()} == {"ca.key", "ca.pem", "server.key", "server.pem"} | nodes
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert (folder / "node0.pub").read_text().startswith("ecdsa-sha2-nistp384 ")
    assert "keys: exists already; remove it or name another folder" in start("make-trial-keys.sh").refusal()
    shake_hands(folder, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(folder, "example.org")


def shake_hands(folder, name):
    """Begin a TLS connection between two ends in this process; the client checks as strictly as it can."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem", folder / "server.key")
    client = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there, server_hostname=name), server.wrap_bio(there, back, server_side=True)]
    for end in ends * 3:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert ends[0].version() == "TLSv1.3"
