"""runc: a container's configuration, its start, commands in it, signals, its end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
    "AUDIT_WRITE",
)
PRIVILEGED = (*CAPABILITIES, "SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "NET_RAW", "SYS_NICE")


@dataclass(frozen=True)
class Spec:
    """What a container is made from. ``namespaces`` maps a kind to the /proc path to join."""

    identifier: str
    arguments: list[str]
    env: dict[str, str]
    hostname: str
    namespaces: dict[str, str]
    binds: list[tuple[str, str, bool]] = field(default_factory=list)
    cwd: str = "/"
    uid: int = 0
    gid: int = 0
    is_read_only: bool = False
    capabilities: tuple[str, ...] = CAPABILITIES
    no_new_privileges: bool = False
    layer: Path | None = None


class Runc:
    """Containers under one folder, which must lie on a tmpfs (overlay needs that of its upper)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state = folder / "runc"

    def _command(self, *arguments: str) -> list[str]:
        return ["runc", "--root", str(self._state), *arguments]

    def start(self, spec: Spec, log: Path) -> subprocess.Popen[bytes]:
        """Start a container; the process is runc's, which ends with the container's code."""
        home = self.folder / "containers" / spec.identifier
        for name in ("upper", "work", "rootfs"):
            (home / name).mkdir(parents=True)
        lower = f"{spec.layer}:/" if spec.layer else "/"
        options = f"lowerdir={lower},upperdir={home}/upper,workdir={home}/work"
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, str(home / "rootfs")]
        subprocess.run(mount, check=True, capture_output=True)
        (home / "config.json").write_text(json.dumps(_config(spec)))
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as sink:
            return subprocess.Popen(
                self._command("run", "--bundle", str(home), spec.identifier),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    def exec(self, identifier: str, command: list[str]) -> subprocess.Popen[bytes]:
        """Run a command in a container with pipes on all three streams."""
        return subprocess.Popen(
            self._command("exec", identifier, *command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def pid(self, identifier: str) -> int | None:
        """The first process of a running container, in the host's numbers."""
        done = subprocess.run(self._command("state", identifier), capture_output=True, check=False)
        if done.returncode != 0:
            return None
        state = json.loads(done.stdout)
        return int(state["pid"]) if state["status"] == "running" else None

    def signal(self, identifier: str, name: str) -> None:
        """Send a signal to the first process; silent if it has gone."""
        subprocess.run(self._command("kill", identifier, name), capture_output=True, check=False)

    def remove(self, identifier: str) -> None:
        """Kill what is left and take the container's files away."""
        subprocess.run(
            self._command("delete", "--force", identifier), capture_output=True, check=False
        )
        home = self.folder / "containers" / identifier
        subprocess.run(["umount", "-l", str(home / "rootfs")], capture_output=True, check=False)
        with contextlib.suppress(OSError):
            shutil.rmtree(home)


def _config(spec: Spec) -> dict[str, object]:
    caps = [f"CAP_{name}" for name in spec.capabilities]
    # A user other than root gets no effective capabilities, as with any runtime.
    effective = caps if spec.uid == 0 else []
    nosuid = ["nosuid", "noexec", "nodev"]
    mounts: list[dict[str, object]] = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        _mount("/dev", "tmpfs", ["nosuid", "mode=755"]),
        _mount("/dev/pts", "devpts", ["newinstance", "ptmxmode=0666", "mode=0620"]),
        _mount("/dev/shm", "tmpfs", ["nosuid", "nodev", "mode=1777"]),
        _mount("/sys", "sysfs", [*nosuid, "ro"]),
        _mount("/tmp", "tmpfs", ["nosuid", "nodev", "mode=1777"]),
        _mount("/run", "tmpfs", ["nosuid", "nodev", "mode=755"]),
    ]
    mounts = [m for m in mounts if m["destination"] != "/sys" or os.geteuid() == 0]
    for source, goal, read_only in spec.binds:
        options = ["rbind", "ro" if read_only else "rw"]
        mounts.append({"destination": goal, "type": "bind", "source": source, "options": options})
    kinds = ("pid", "network", "ipc", "uts", "mount")
    namespaces = [
        {"type": kind, "path": spec.namespaces[kind]} if kind in spec.namespaces else {"type": kind}
        for kind in kinds
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": spec.uid, "gid": spec.gid},
            "args": spec.arguments,
            "env": [f"{name}={value}" for name, value in spec.env.items()],
            "cwd": spec.cwd,
            "capabilities": {"bounding": caps, "effective": effective, "permitted": effective},
            "noNewPrivileges": spec.no_new_privileges,
        },
        "root": {"path": "rootfs", "readonly": spec.is_read_only},
        "mounts": mounts,
        "linux": {"namespaces": namespaces},
    }


def _mount(goal: str, kind: str, options: list[str]) -> dict[str, object]:
    return {"destination": goal, "type": kind, "source": kind, "options": options}
