"""The port over the user's own kubectl: their login, their proxies, their protocol fallbacks.

Every call names context and namespace, asks for JSON and carries a time limit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.cluster import complaints
from solscope.cluster.port import ExecResult, NotFound, Object, Unreachable, WatchEvent
from solscope.errors import ClusterError

# kubectl's own process gets this much longer than its request before it is stopped.
_GRACE_S = 15.0


class Kubectl:
    """A cluster through kubectl.

    ``context=None`` takes the current one *once*, and names it in every call from then on; so
    with ``namespace=None`` and that context's namespace. Raises ClusterError where there is no
    kubectl or no such context.
    """

    def __init__(
        self,
        *,
        context: str | None = None,
        namespace: str | None = None,
        binary: str | None = None,
        timeout_s: float = 20.0,
    ) -> None:
        self._binary = _find(binary)
        self._timeout_s = timeout_s
        view = self._config(context)
        self._context = context or view.get("current-context") or None
        # In a pod, kubectl finds the cluster without a kubeconfig and has no context to name.
        if self._context is None and "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise ClusterError(
                "kubectl has no current context",
                hint="name one with --context; `kubectl config get-contexts -o name` lists them",
            )
        self._namespace = namespace or _namespace(view) or "default"

    @property
    def context(self) -> str | None:
        """The context that every call names."""
        return self._context

    @property
    def namespace(self) -> str:
        """The namespace that every call names."""
        return self._namespace

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Object:
        """One object. Raises NotFound, UnknownKind, Forbidden, Unreachable."""
        body = self._json([*self._scope(namespace), "get", kind, name], f"{kind}/{name}")
        if not isinstance(body, dict):
            raise ClusterError("kubectl answered with no object", where=f"{kind}/{name}")
        return body

    def list(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        everywhere: bool = False,
    ) -> tuple[Object, ...]:
        """Objects of a kind. Raises UnknownKind, Forbidden, Unreachable."""
        # --all-namespaces belongs to the verb; kubectl takes it for a plugin's before it.
        verb = ["get", kind, "--all-namespaces"] if everywhere else ["get", kind]
        arguments = verb if everywhere else [*self._scope(namespace), *verb]
        arguments += ["-l", labels] if labels else []
        arguments += ["--field-selector", fields] if fields else []
        body = self._json(arguments, kind)
        return tuple(body.get("items") or ()) if isinstance(body, dict) else ()

    def raw(self, path: str) -> bytes:
        """The body of a GET on an API path."""
        return self._run(["get", "--raw", path], path)

    def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        """Create with strict field validation. Raises Refused, Conflict, Forbidden."""
        arguments = [*self._scope(_namespace_of(obj)), "create", "-f", "-", "--validate=strict"]
        arguments += ["--dry-run=server"] if dry_run else []
        created: Object = self._json(arguments, _reference(obj), stdin=json.dumps(obj).encode())
        return created

    def patch(
        self,
        kind: str,
        name: str,
        patch: object,
        *,
        namespace: str | None = None,
        patch_type: str = "strategic",
    ) -> Object:
        """Patch an object. Raises NotFound, Conflict, Refused, Forbidden."""
        arguments = [*self._scope(namespace), "patch", kind, name]
        arguments += [f"--type={patch_type}", "-p", json.dumps(patch)]
        patched: Object = self._json(arguments, f"{kind}/{name}")
        return patched

    def delete(
        self,
        kind: str,
        name: str,
        *,
        uid: str | None = None,
        namespace: str | None = None,
        grace_s: int | None = None,
    ) -> None:
        """Delete in the foreground, without waiting. A missing object is no error."""
        where = f"{kind}/{name}"
        try:
            if uid is None:
                arguments = [*self._scope(namespace), "delete", kind, name]
                arguments += [] if grace_s is None else [f"--grace-period={grace_s}"]
                self._run([*arguments, "--cascade=foreground", "--wait=false"], where)
                return
            # kubectl has no option for a uid precondition; the API's own body has.
            options = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Foreground",
                "preconditions": {"uid": uid},
                **({} if grace_s is None else {"gracePeriodSeconds": grace_s}),
            }
            obj = self.get(kind, name, namespace=namespace)
            path = self._path(obj, namespace or self._namespace)
            self._run(
                ["delete", "--raw", path, "-f", "-"], where, stdin=json.dumps(options).encode()
            )
        except NotFound:
            return

    def watch(
        self,
        kind: str,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        name: str | None = None,
        timeout_s: float,
    ) -> Iterator[WatchEvent]:
        """Events until ``timeout_s`` has passed or kubectl loses the stream."""
        arguments = [*self._scope(namespace), "get", kind, *([name] if name else [])]
        arguments += ["-l", labels] if labels else []
        arguments += ["--watch", "--output-watch-events", "-o", "json"]
        process = subprocess.Popen(
            self._command(arguments, timeout_s=timeout_s),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # kubectl reconnects by itself in some versions: its end must not depend on it.
        stop = threading.Timer(timeout_s, process.terminate)
        stop.daemon = True
        stop.start()
        try:
            seen = False
            for event in _events(process):
                seen = True
                yield event
            errors = process.stderr.read() if process.stderr else ""
            if process.wait() > 0 and not seen and not complaints.is_unreachable(errors):
                raise self._error(errors, kind)
        finally:
            stop.cancel()
            process.terminate()
            process.communicate()

    def exec(
        self,
        pod: str,
        container: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
    ) -> ExecResult:
        """Run a command in a container. Raises Forbidden, NotFound, Unreachable."""
        arguments = [*self._scope(namespace), "exec", pod, "-c", container]
        arguments += ["-i"] if stdin is not None else []
        done = self._spawn([*arguments, "--", *command], timeout_s=timeout_s, stdin=stdin)
        stderr = done.stderr.decode(errors="replace")
        if done.returncode == 0:
            return ExecResult(stdout=done.stdout, stderr=stderr, exit_code=0)
        not_started = complaints.is_not_started(stderr)
        if complaints.is_the_clusters(stderr, not_started) and not done.stdout:
            raise self._error(stderr, f"pod/{pod}")
        return ExecResult(
            stdout=done.stdout,
            stderr=stderr,
            exit_code=done.returncode,
            failed_to_start=not_started,
        )

    def can_i(self, verb: str, resource: str, *, namespace: str | None = None) -> bool:
        """Whether the API server says yes to that verb."""
        base, _, sub = resource.partition("/")
        arguments = [*self._scope(namespace), "auth", "can-i", verb, base]
        arguments += [f"--subresource={sub}"] if sub else []
        done = self._spawn(arguments, timeout_s=self._timeout_s)
        answer = done.stdout.decode(errors="replace").strip()
        if answer.startswith(("yes", "no")):
            return answer.startswith("yes")
        raise self._error(done.stderr.decode(errors="replace"), resource)

    def _scope(self, namespace: str | None) -> Sequence[str]:
        return ["--namespace", namespace or self._namespace]

    def _command(self, arguments: Sequence[str], *, timeout_s: float) -> Sequence[str]:
        limit = f"--request-timeout={max(1, round(timeout_s))}s"
        context = [] if self._context is None else ["--context", self._context]
        return [self._binary, *context, limit, *arguments]

    def _json(self, arguments: Sequence[str], where: str, *, stdin: bytes | None = None) -> Any:
        text = self._run([*arguments, "-o", "json"], where, stdin=stdin)
        try:
            return json.loads(text)
        except ValueError as error:
            raise ClusterError("kubectl did not answer with JSON", where=where) from error

    def _run(self, arguments: Sequence[str], where: str, *, stdin: bytes | None = None) -> bytes:
        done = self._spawn(arguments, timeout_s=self._timeout_s, stdin=stdin)
        if done.returncode != 0:
            raise self._error(done.stderr.decode(errors="replace"), where)
        return done.stdout

    def _spawn(
        self, arguments: Sequence[str], *, timeout_s: float, stdin: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                self._command(arguments, timeout_s=timeout_s),
                input=stdin if stdin is not None else b"",
                capture_output=True,
                timeout=timeout_s + _GRACE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unreachable(
                f"kubectl gave no answer within {timeout_s + _GRACE_S:.0f} s",
                hint="is the cluster reachable? `kubectl --context "
                f"{self._context} version` shows it",
            ) from error

    def _config(self, context: str | None) -> Mapping[str, Any]:
        """The part of the kubeconfig that the context needs, as kubectl sees it."""
        command = [self._binary, "config", "view", "--minify", "-o", "json"]
        command += ["--context", context] if context else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        except OSError as error:
            raise ClusterError(
                f"{self._binary} does not start: {error.strerror}",
                hint="install kubectl for this machine, or name it with SOLSCOPE_KUBECTL",
            ) from error
        if done.returncode == 0:
            view: Mapping[str, Any] = json.loads(done.stdout or "{}")
            return view
        if "cannot locate context" in done.stderr or "does not exist" in done.stderr:
            raise self._no_context(context)
        if "must exist in order to minify" in done.stderr:
            return {}
        raise ClusterError(
            f"kubectl cannot read its configuration: {complaints.first_line(done.stderr)}",
            where="kubeconfig",
            hint="`kubectl config view` shows the fault; KUBECONFIG names another file",
        )

    def _no_context(self, context: str | None) -> ClusterError:
        command = [self._binary, "config", "get-contexts", "-o", "name"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        names = ", ".join(done.stdout.split()[:8])
        return ClusterError(
            f"there is no context {context!r}" if context else "the current context does not exist",
            where="kubeconfig",
            hint=f"known contexts: {names}" if names else "the kubeconfig names no context",
        )

    def _path(self, obj: Object, namespace: str) -> str:
        """The API path of an object, its plural asked from the server."""
        version = str(obj["apiVersion"])
        group = version.rpartition("/")[0]
        arguments = ["api-resources", f"--api-group={group}", "--no-headers", "-o", "wide"]
        done = self._spawn(arguments, timeout_s=self._timeout_s)
        table, said = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        # Any group that is down (a broken metrics API) makes it fail, its table whole all the same.
        if done.returncode != 0 and complaints.is_unreachable(said):
            raise self._error(said, version)
        plural = f"{str(obj['kind']).lower()}s"
        for line in table.splitlines():
            if f" {obj['kind']} " in line:
                plural = line.split()[0]
        base = f"/apis/{version}" if group else f"/api/{version}"
        return f"{base}/namespaces/{namespace}/{plural}/{obj['metadata']['name']}"

    def _error(self, stderr: str, where: str) -> ClusterError:
        return complaints.error_of(stderr, where, context=self._context)


def _find(binary: str | None) -> str:
    wanted = binary or os.environ.get("SOLSCOPE_KUBECTL") or "kubectl"
    found = shutil.which(wanted)
    if found is None:
        raise ClusterError(
            f"{wanted} was not found",
            hint="install kubectl, name it with SOLSCOPE_KUBECTL, or give a manifest with -f",
        )
    return found


def _namespace(view: Mapping[str, Any]) -> str | None:
    for entry in view.get("contexts") or ():
        namespace = (entry.get("context") or {}).get("namespace")
        if namespace:
            return str(namespace)
    return None


def _namespace_of(obj: Object) -> str | None:
    namespace = (obj.get("metadata") or {}).get("namespace")
    return str(namespace) if namespace else None


def _reference(obj: Object) -> str:
    return f"{obj.get('kind')}/{(obj.get('metadata') or {}).get('name')}"


def _events(process: subprocess.Popen[str]) -> Iterator[WatchEvent]:
    decoder, held = json.JSONDecoder(), ""
    for line in process.stdout or ():
        held += line
        # kubectl indents: an object ends with a brace in the first column.
        if not line.startswith("}") and not held.lstrip().startswith('{"'):
            continue
        try:
            event, end = decoder.raw_decode(held.lstrip())
        except ValueError:
            continue
        held = held.lstrip()[end:]
        yield WatchEvent(type=event["type"], object=event["object"])
