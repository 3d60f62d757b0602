"""Lock file and distribution: ``python tools/dist.py lock REPORT``, ``sbom`` and ``audit ADVISORIES``.

``lock`` writes requirements.lock from what pip resolved: exact versions with the SHA-256 of their files, no address.
``sbom`` writes a software bill of materials (CycloneDX, JSON) of what the lock file names into dist/.
``audit`` looks for known vulnerabilities of the locked versions in a saved copy of the PyPI advisories (OSV's all.zip),
without a network. Exit code 1: there are some; 2: the copy cannot be read.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK, CONSTRAINTS = ROOT / "requirements.lock", ROOT / "constraints.txt"
APART = ("torch",)  # has a build of its own on every kind of machine: installed first, by its exact version
LINE = re.compile(r"([A-Za-z0-9._-]+)==(\S+) --hash=sha256:([0-9a-f]{64})")
HEAD = """\
# The versions of constraints.txt with the SHA-256 of their files, for CPython 3.11 on Linux x86-64, by `make lock`.
#   pip install torch=={torch}
#   pip install --no-deps --require-hashes -r requirements.lock
#   pip install --no-deps --no-build-isolation .    (needs hatchling; or --no-deps and a wheel)
"""


def normal(name: str) -> str:
    """Return a project's name as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def constrained() -> dict[str, str]:
    """Return the versions of constraints.txt by normal name."""
    lines = (line.split("#")[0].strip() for line in CONSTRAINTS.read_text().splitlines())
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines if "==" in line)}


def locked() -> dict[str, tuple[str, str]]:
    """Return version and SHA-256 of everything in the lock file, by normal name."""
    found = {}
    for line in LOCK.read_text().splitlines():
        if line and not line.startswith("#"):
            if not (parts := LINE.fullmatch(line)):
                sys.exit(f"{LOCK.name}: expected NAME==VERSION --hash=sha256:DIGEST, got {line!r}")
            found[normal(parts[1])] = (parts[2], parts[3])
    return found


def write_lock(report: dict[str, Any]) -> None:
    """Write the lock file from a report of ``pip install --dry-run --report``."""
    lines = []
    for item in report["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        if normal(name) not in (*APART, "fedrela"):
            lines.append(
                f"{normal(name)}=={version} --hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}"
            )
    LOCK.write_text(HEAD.format(torch=constrained()["torch"]) + "\n".join(sorted(lines)) + "\n")


def everything() -> dict[str, tuple[str, str]]:
    """Return version and SHA-256 of all that is installed, by normal name; what is installed apart has no digest."""
    return {name: (version, "") for name, version in constrained().items() if name in APART} | locked()


def bill_of_materials() -> dict[str, Any]:
    """Return the bill of materials; the same lock file gives the same bytes, so it holds no time."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = sorted(normal(re.split(r"[<>=!~ \[;]", each)[0]) for each in project["dependencies"])
    parts = everything()
    components = [
        {
            "type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            **({"hashes": [{"alg": "SHA-256", "content": sha}]} if sha else {}),
        }
        for name, (version, sha) in sorted(parts.items())
    ]  # fmt: skip
    own = f"pkg:pypi/fedrela@{project['version']}"
    about = {"type": "library", "name": "fedrela", "version": project["version"], "purl": own, "bom-ref": own}
    about["licenses"] = [{"license": {"id": project["license"]}}]
    needs = [f"pkg:pypi/{name}@{parts[name][0]}" for name in direct if name in parts]
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": about},
        "components": components, "dependencies": [{"ref": own, "dependsOn": needs}],
    }  # fmt: skip


def read_advisories(path: Path) -> list[dict[str, Any]]:
    """Return the advisories in a zip file of OSV records that are in force; without any, the file is not what it says.

    A record that cannot be read is an error: it could be about a package that is installed.
    """
    with zipfile.ZipFile(path) as archive:
        records = [json.loads(archive.read(name)) for name in archive.namelist() if name.endswith(".json")]
    known = [record for record in records if any(_packages(record))]
    if not known:
        raise ValueError("it holds no advisory of a PyPI package")
    return [record for record in known if "withdrawn" not in record]


def _packages(advisory: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for affected in advisory.get("affected", ()):
        if affected.get("package", {}).get("ecosystem") == "PyPI":
            yield normal(affected["package"]["name"]), affected


def is_affected(version: str, affected: dict[str, Any]) -> bool:
    """Whether an advisory lists a version, or one of its ranges holds it; a range that cannot be read counts."""
    from packaging.utils import canonicalize_version
    from packaging.version import InvalidVersion, Version

    if canonicalize_version(version) in map(canonicalize_version, affected.get("versions", ())):
        return True
    for events in (each["events"] for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM"):
        here, found = Version(version), False
        try:
            ordered = sorted((Version(at), kind) for event in events for kind, at in event.items())
        except InvalidVersion:
            return True
        for at, kind in ordered:
            if kind == "introduced" and here >= at:
                found = True
            elif (kind == "fixed" and here >= at) or (kind == "last_affected" and here > at):
                found = False
        if found:
            return True
    return False


def audit(path: Path) -> int:
    """Print the known vulnerabilities of what is installed, by a saved copy of the advisories; return the exit code."""
    try:
        advisories = read_advisories(path)
    except (OSError, ValueError, KeyError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        print(f"{path}: expected a zip file of OSV records: {error}", file=sys.stderr)
        return 2
    parts, found = everything(), set()
    for advisory in advisories:
        for name, affected in _packages(advisory):
            if name in parts and is_affected(parts[name][0], affected):
                names = ", ".join([advisory["id"], *advisory.get("aliases", ())])
                line = f"{name} {parts[name][0]}: {names}: {advisory.get('summary', 'no summary')}"
                found.add("".join(each if each.isprintable() else "?" for each in line))
    for line in sorted(found):
        print(line)
    newest = max((advisory.get("modified", "") for advisory in advisories), default="")[:10]
    print(f"{len(found)} of {len(advisories)} advisories apply to {len(parts)} packages; the newest is of {newest}")
    return int(bool(found))


def main(arguments: list[str]) -> None:
    """Carry out one of the commands."""
    match arguments:
        case ["lock", report]:
            write_lock(json.loads(Path(report).read_text()))
        case ["sbom"]:
            found = bill_of_materials()
            version = found["metadata"]["component"]["version"]
            target = ROOT / "dist" / f"fedrela-{version}.cdx.json"
            target.parent.mkdir(exist_ok=True)
            target.write_text(json.dumps(found, indent=1) + "\n")
        case ["audit", advisories]:
            sys.exit(audit(Path(advisories)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
