"""What the namespace and the container's own limits allow a profiling copy."""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.preflight.view import container_name, found, inside_text, namespace_level
from solscope.cluster.secrecy import MASK
from solscope.model.cluster import ContainerSnapshot, WorkloadSnapshot
from solscope.model.finding import Finding, Severity


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Pod Security level, file system, user, tools in the image, host access, secrets."""
    yield from _level(workload)
    if workload.server is not None:
        yield from _file_system(workload, workload.server)
        yield from _user(workload, workload.server)
    yield from _tools(workload)
    yield from _host(workload)
    yield from _secrets(workload)


def _level(workload: WorkloadSnapshot) -> Iterator[Finding]:
    level, source = namespace_level(workload)
    where = f"namespace {workload.namespace}" if workload.namespace else "namespace"
    if level is None:
        yield found(
            "pod-security-unknown",
            Severity.INFO,
            where,
            "the namespace's Pod Security level is not known",
            "give the right to get the namespace, or dry-run the sister: the server refuses there",
            f"missing: {source}",
        )
    elif level != "privileged":
        yield found(
            "pod-security-level",
            Severity.INFO,
            where,
            f"Pod Security enforces {level}: SYS_ADMIN and SYS_PTRACE are refused"
            + (", and everything must run as non-root" if level == "restricted" else ""),
            "keep the sister without added capabilities; that suffices where the node's counters "
            "are open",
            source,
        )


def _file_system(workload: WorkloadSnapshot, server: ContainerSnapshot) -> Iterator[Finding]:
    root = inside_text(workload, "root") or ""
    read_only = server.security.read_only_root or bool(re.search(r" ro[, ]", root))
    if read_only and "/tmp" not in server.mounts:
        yield found(
            "tmpdir-not-writable",
            Severity.WARNING,
            container_name(workload),
            "the root file system is read-only and nothing is mounted at /tmp: ncu stops before "
            "it starts the server",
            "mount an emptyDir in the sister and set TMPDIR to it; write reports to a volume too",
            "readOnlyRootFilesystem: true" if server.security.read_only_root else root.strip(),
        )
    limit = server.ephemeral_storage_limit_bytes
    if limit is not None and limit < 20e9:
        yield found(
            "ephemeral-storage-limit",
            Severity.INFO,
            container_name(workload),
            f"ephemeral storage is limited to {limit / 1e9:.0f} GB; reports on an emptyDir count "
            "against it, and going over evicts the pod",
            "keep the capture small, or put reports on a claim",
            f"limits.ephemeral-storage {limit} bytes",
        )


def _user(workload: WorkloadSnapshot, server: ContainerSnapshot) -> Iterator[Finding]:
    security = server.security
    match = re.search(r"uid=(\d+)", inside_text(workload, "id") or "")
    uid = int(match[1]) if match else security.run_as_user
    if security.run_as_non_root or (uid or 0) != 0:
        yield found(
            "runs-as-non-root",
            Severity.INFO,
            container_name(workload),
            "the server does not run as root"
            + (f" (user {uid})" if uid else "")
            + ": added capabilities have no effect, and only its own folders are writable",
            "set TMPDIR and HOME to volumes in the sister; warnings about deploying section files "
            "into HOME are harmless",
            "runAsNonRoot: true" if security.run_as_non_root else f"user {uid}",
        )


def _tools(workload: WorkloadSnapshot) -> Iterator[Finding]:
    if workload.inside is None:
        return
    where = container_name(workload)
    refused = workload.inside.texts.get("no_shell")
    if refused is not None:
        yield found(
            "no-shell-in-image",
            Severity.WARNING,
            where,
            "the image has no shell: the sister cannot wrap a script, and nothing can be asked "
            "inside",
            "wrap the program itself; read results through the sister's own sidecar",
            refused,
        )
    elif "which" in workload.inside.texts:
        names = {path.rpartition("/")[2] for path in workload.inside.texts["which"].splitlines()}
        if "tar" not in names:
            yield found(
                "no-tar-in-image",
                Severity.INFO,
                where,
                "the image has no tar, so `kubectl cp` cannot fetch anything from it",
                "fetch reports from the sister's sidecar, with size and SHA-256 compared",
                "`command -v tar` found nothing",
            )


def _host(workload: WorkloadSnapshot) -> Iterator[Finding]:
    template = workload.template
    if template.host_network:
        yield found(
            "host-network",
            Severity.BLOCKS,
            workload.reference,
            "the pod uses the node's network: a copy on the same node finds its ports taken, and "
            "elsewhere listens on the node's own address",
            "profile a variant without hostNetwork",
            "hostNetwork: true",
        )
    shared = [n for n, on in (("hostPID", template.host_pid), ("hostIPC", template.host_ipc)) if on]
    if shared:
        level, _ = namespace_level(workload)
        yield found(
            "host-namespaces",
            Severity.INFO,
            workload.reference,
            f"the pod shares {' and '.join(shared)} with the node"
            + (
                "; baseline refuses that for a new pod"
                if level in ("baseline", "restricted")
                else ""
            ),
            "leave hostPID out of the sister unless transfers need it; keep hostIPC",
            *(f"{name}: true" for name in shared),
        )


def _secrets(workload: WorkloadSnapshot) -> Iterator[Finding]:
    names = [
        f"{var.name} in container {c.name}"
        for c in (*workload.template.containers, *workload.template.init_containers)
        for var in c.env
        if var.is_secret and var.origin is None
    ]
    arguments = workload.engine.arguments if workload.engine else ()
    names += [f"--{a.name} on the server's command line" for a in arguments if a.value == MASK]
    if names:
        yield found(
            "secret-in-plain-text",
            Severity.WARNING,
            workload.reference,
            "secrets stand in plain text in the object: everyone who may read it has them",
            "move them to a Secret, so that a copy can refer to them; our pages show none of them",
            *names,
        )
