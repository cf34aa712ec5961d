"""The sister of a target, assembled: refusals first, then the pod step by step, then the proof."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from solscope.capture.sister import (
    caches,
    departure,
    elsewhere,
    environment,
    isolation,
    naming,
    neighbours,
    notices,
    owners,
    podspec,
    refusal,
    serverside,
    serving,
    tooling,
)
from solscope.capture.sister import (
    command as commands,
)
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding
from solscope.model.plan import CapturePlan, Strategy, Window
from solscope.model.sister import (
    Action,
    Change,
    Sister,
    SisterKind,
    SisterOptions,
    SisterTarget,
)

PRODUCT, HOSTNAME = "nvidia.com/gpu.product", "kubernetes.io/hostname"
# Kueue can be set up to throw out workloads whose pods do not get ready.
_QUEUE = "kueue.x-k8s.io/"
HARNESS_FILE = "/solscope/harness/harness.py"


def build(
    target: SisterTarget,
    plan: CapturePlan,
    *,
    objects: Sequence[KubernetesObject],
    options: SisterOptions,
    plan_digest: str,
    unread: Iterable[str] = (),
    server_version: tuple[int, int] | None = None,
) -> Sister:
    """The sister of ``target``, or its refusal with every reason.

    ``objects`` is all that was seen in the folder or the namespace: what is matched against the
    sister's labels. ``unread`` names what could not be seen. ``plan_digest`` identifies the plan.
    ``server_version`` is Kubernetes' major and minor, where a cluster was asked.
    """
    assembly = _Assembly(target, plan, objects, options, plan_digest)
    assembly.findings += refusal.of_version(server_version, options)
    return assembly.sister(tuple(unread))


class _Assembly:
    """One assembly: the copy that changes, and what was said about it."""

    def __init__(
        self,
        target: SisterTarget,
        plan: CapturePlan,
        objects: Sequence[KubernetesObject],
        options: SisterOptions,
        plan_digest: str,
    ) -> None:
        self.target, self.plan, self.objects = target, plan, objects
        mark = (target.kind, target.name, target.namespace or "", target.container)
        self.experiment = naming.experiment_id(options.experiment, *mark, plan_digest)
        self.name = naming.sister_name(target.name, naming.digest(self.experiment, *mark))
        self.image = options.tools_image or tooling.default_image(plan)
        self.engine: str | None = None
        self.options, self.plan_digest = options, plan_digest
        self.template: dict[str, Any] = copy.deepcopy(
            {
                "metadata": dict(target.template.get("metadata") or {}),
                "spec": dict(target.template.get("spec") or {}),
            }
        )
        self.changes: list[Change] = []
        self.findings: list[Finding] = []
        self.labels = {
            naming.EXPERIMENT_LABEL: self.experiment,
            naming.SISTER_LABEL: self.name.rsplit("-", 1)[1],
            **(options.labels or {}),
        }

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.template["spec"]
        return spec

    def sister(self, unread: tuple[str, ...]) -> Sister:
        self.findings += refusal.of_plan(self.plan, self.options)
        planned = self.plan.target
        if planned is not None and planned.rpartition("/")[2] != self.target.name:
            self.findings.append(notices.another_target(planned, self.target))
        if self.plan.runs:
            self.findings.append(notices.first_run_only(self.target, len(self.plan.runs)))
        controlled = list(refusal.of_controller(self.target.kind, self.target.name))
        self.findings += controlled
        if controlled or not self.spec.get("containers"):
            return self._result((), None)
        self.findings += refusal.of_pod(self.target, self.spec, self.objects)
        self.findings += neighbours.of_target(self.target, self.objects, self.options.accept)
        server = self._server()
        located = self._located(server)
        if any(finding.blocks for finding in self.findings) or located is None:
            return self._result((), None)
        self._change_pod(server, located)
        proof = self._prove(unread)
        self.findings += notices.of_proof(proof, self.options.accept)
        self.findings += notices.of_target(
            self.target, self.options, self.objects, self.changes, located.engine, self.image
        )
        self.findings += caches.findings(self.target, self.options)
        objects = () if self._blocked() else self._objects()
        self.findings += refusal.of_secrets(self.target, objects)
        return self._result(() if self._blocked() else objects, proof)

    def _blocked(self) -> bool:
        return any(finding.blocks for finding in self.findings)

    def _result(self, objects: tuple[KubernetesObject, ...], proof: Any) -> Sister:
        return Sister(
            name=self.name,
            experiment=self.experiment,
            target=self.target.reference,
            namespace=self.target.namespace,
            strategy=self.plan.strategy.value,
            container=self.target.container,
            objects=objects,
            changes=tuple(self.changes),
            proof=proof,
            findings=tuple(self.findings),
            engine=self.engine,
            attach_command=self._attach_command() if objects else (),
        )

    # -- the server's command ----------------------------------------------------------------

    def _server(self) -> dict[str, Any]:
        named = (c for c in self.spec["containers"] if c.get("name") == self.target.container)
        found: dict[str, Any] = next(named)
        return found

    def _located(self, server: Mapping[str, Any]) -> commands.ServerCommand | None:
        """The server's command; None with a finding if it cannot be known or must not run."""
        given = self.options.server_command
        command = [str(word) for word in given or server.get("command") or ()]
        args = [] if given else [str(word) for word in server.get("args") or ()]
        image = str(server.get("image", ""))
        if not command and self.plan.strategy is not Strategy.HARNESS:
            self.findings.append(refusal.entrypoint_unknown(self.target, args, image))
            return None
        located = commands.locate(command, args)
        self.findings += refusal.of_command(self.target, located, [*command, *args], image)
        if located is not None:
            if located.engine is not commands.Engine.UNKNOWN:
                self.engine = located.engine.value
            self.findings += refusal.of_window(self.target, located, self.plan, image)
            self.findings += elsewhere.of_target(self.target, self._server(), located, self.objects)
        return located

    def _prefix(self, unset_too: Iterable[str]) -> list[str]:
        """What stands before the server: ncu, started without the variables of others."""
        unset = dict.fromkeys((*environment.ALWAYS_UNSET, *self.plan.unset, *unset_too))
        prefix = ["env", *(part for name in unset for part in ("-u", name))]
        ncu = tooling.ncu_path(self.options)
        match self.plan.strategy:
            case Strategy.ATTACH:
                return [*prefix, ncu, *self.plan.wrapper_arguments]
            case Strategy.PRELOAD:
                return prefix
            case _:
                return [*prefix, *self.plan.argv(ncu=ncu, directory=tooling.RESULTS)]

    def _attach_command(self) -> tuple[str, ...]:
        if self.plan.strategy not in (Strategy.ATTACH, Strategy.PRELOAD):
            return ()
        ncu = tooling.ncu_path(self.options)
        return self.plan.argv(ncu=ncu, directory=tooling.RESULTS)

    # -- the pod -----------------------------------------------------------------------------

    def _change_pod(self, server: dict[str, Any], located: commands.ServerCommand) -> None:
        spec, target = self.spec, self.target
        old_labels = (target.template.get("metadata") or {}).get("labels") or {}
        extra = frozenset(self.options.labels or ())
        self.changes += podspec.relabel(self.template, self.labels, extra)
        self.changes += podspec.forget_the_live_pod(spec)
        self.changes += podspec.leave_the_cluster(spec, old_labels)
        self.changes += podspec.leave_out(spec, self.options.without, target.container)
        self.changes += podspec.drop_traffic_sidecars(spec, target.container)
        self.changes += podspec.quieten(spec)
        self._clean_environments(server)
        self._wrap(server, located)
        if self.options.kind is SisterKind.JOB:
            self.changes += podspec.demote_companions(spec, target.container)
            # It ends at its deadline; what never ends must not hold a node for ever.
            self.changes += podspec.stay_put(self.template)
        self.changes += caches.keep_private(spec, server)
        if self.options.read_only_claims:
            self.changes += podspec.mount_claims_read_only(spec)
        if self.options.sys_admin:
            self.changes += tooling.allow_counters(server)
        self.changes += tooling.room_to_write(spec, server)
        self.changes += tooling.install(
            spec,
            server,
            plan=self.plan,
            options=self.options,
            image=self.image,
            arbitrary_user=any(
                "openshift.io" in str(item.get("apiVersion", "")) for item in self.objects
            ),
        )
        self.changes += departure.at_once(
            server,
            ncu=tooling.ncu_path(self.options),
            locks_clocks=self.plan.clock_control != "none",
        )
        self.changes += podspec.stay_near(spec, self._places())
        self.changes += neighbours.stay_away(spec)
        restart = "Never" if self.options.kind is SisterKind.JOB else "Always"
        self.changes += podspec.last_words(spec, restart=restart, hold_s=self.options.hold_s)
        queue = next((key for key in self.labels if key.startswith(_QUEUE)), None)
        if queue is None:
            self.changes += podspec.never_ready(spec)
        else:
            self.findings.append(notices.may_be_ready(self.target, queue))

    def _places(self) -> dict[str, tuple[str, str]]:
        """Labels of the nodes that will do, as far as the target's own node is known."""
        if self.target.node is None:
            return {}
        known = refusal.node_labels(self.objects, self.target.node)
        found: dict[str, tuple[str, str]] = {}
        product = known.get(PRODUCT)
        if product is not None:
            found[PRODUCT] = (product, "numbers of another GPU would not be the target's")
        modes = refusal.access_modes(self.objects)
        claims = podspec.claims_of(self.spec)
        if any(modes.get(name, ()) == ("ReadWriteOnce",) for name in claims):
            host = known.get(HOSTNAME, self.target.node)
            found[HOSTNAME] = (host, "a ReadWriteOnce volume can be used on one node only")
        return found

    def _clean_environments(self, server: dict[str, Any]) -> None:
        for path, container in podspec.containers(self.spec):
            changes, secrets = environment.clean(
                container, path, unset=self.plan.unset, secret_name=f"{self.name}-env"
            )
            self.changes += changes
            if secrets:
                self.findings.append(
                    notices.secrets_not_copied(self.target, secrets, f"{self.name}-env")
                )
        path = f"spec.containers[{server['name']}]"
        self.changes += environment.put(
            server, path, self.plan.environment, "the plan sets it for ncu"
        )
        if self.options.read_only_claims:
            offline = {"HF_HUB_OFFLINE": "1"}
            why = "a read-only cache takes no lock files"
            self.changes += environment.put(server, path, offline, why)

    def _wrap(self, server: dict[str, Any], located: commands.ServerCommand) -> None:
        name = self.target.container
        path = serving.COMMAND_PATH.format(name)
        if self.plan.strategy is Strategy.HARNESS:
            located = commands.ServerCommand(
                engine=commands.Engine.UNKNOWN, words=("python3", HARNESS_FILE)
            )
            self._mount_harness(server)
        else:
            located, changes, found = serverside.alone(
                self.target, server, located, self.plan.gpu_memory_utilization
            )
            self.changes += changes
            self.findings += found
            if self.plan.launches.window is Window.ENGINE_PROFILER:
                located = self._open_window(server, located)
        prefix = self._prefix(self._foreign(server, located))
        command, args = located.under(prefix)
        server["command"], server["args"] = command, args
        if not args:
            del server["args"]
        why = "the profiled process must be started under the profiler"
        what = f"{self.plan.strategy.value}: behind `{shlex.join(prefix)}`"
        self.changes.append(Change(path=path, action=Action.CHANGED, what=what, why=why))
        if self.plan.strategy is Strategy.PRELOAD:
            self.findings.append(notices.preload_unverified(self.target))
            value = f"{tooling.TOOLS}/nsight-compute/libcompute.so"
            server.setdefault("env", []).append({"name": "NV_NCU_INJECTION64_PATH", "value": value})
            self.changes.append(
                Change(
                    path=f"spec.containers[{name}].env[NV_NCU_INJECTION64_PATH]",
                    action=Action.ADDED,
                    what=f"NV_NCU_INJECTION64_PATH={value}",
                    why="unverified: no release of ncu is known to read it",
                )
            )

    def _foreign(self, server: Mapping[str, Any], located: commands.ServerCommand) -> list[str]:
        """Variables that a start script or a ConfigMap sets and that the sister must not have."""
        values, unseen = environment.from_maps(server, self.objects)
        if unseen:
            self.findings.append(notices.variables_unseen(self.target, unseen))
        return environment.foreign(values | commands.assignments(located))

    def _open_window(
        self, server: dict[str, Any], located: commands.ServerCommand
    ) -> commands.ServerCommand:
        name, image = self.target.container, str(server.get("image", ""))
        version = refusal.vllm_version(image)
        located, changes, values = serving.open_window_on_request(located, name, version)
        self.changes += changes
        path = f"spec.containers[{name}]"
        why = "without it /start_profile does not open ncu's window"
        self.changes += environment.put(server, path, values, why)
        if version is None and located.engine is commands.Engine.VLLM:
            self.findings.append(notices.version_unknown(image))
        return located

    def _mount_harness(self, server: dict[str, Any]) -> None:
        volume = "solscope-harness"
        self.spec.setdefault("volumes", []).append(
            {"name": volume, "configMap": {"name": f"{self.name}-harness"}}
        )
        folder = HARNESS_FILE.rsplit("/", 1)[0]
        server.setdefault("volumeMounts", []).append(
            {"name": volume, "mountPath": folder, "readOnly": True}
        )
        why = "holds the script that replays one operation"
        where = f"spec.containers[{server['name']}].volumeMounts[{folder}]"
        for path in (f"spec.volumes[{volume}]", where):
            self.changes.append(
                Change(path=path, action=Action.ADDED, what=f"{self.name}-harness", why=why)
            )

    # -- the proof and the objects -----------------------------------------------------------

    def _objects(self) -> tuple[KubernetesObject, ...]:
        metadata = owners.metadata(
            self.target, self.plan, labels=self.labels, plan_digest=self.plan_digest
        )
        config: tuple[KubernetesObject, ...] = ()
        if self.plan.strategy is Strategy.HARNESS and self.options.harness is not None:
            config = (owners.config_map(f"{self.name}-harness", metadata, self.options.harness),)
        if self.options.kind is SisterKind.DEPLOYMENT:
            return (*config, owners.deployment(self.name, metadata, self.template))
        return (*config, owners.job(self.name, metadata, self.template, self.plan, self.options))

    def _prove(self, unread: tuple[str, ...]) -> Any:
        kind = self.options.kind.value
        return isolation.prove(
            self.objects,
            namespace=self.target.namespace,
            target=(self.target.kind, self.target.name),
            target_labels=(self.target.template.get("metadata") or {}).get("labels") or {},
            sister=(kind, self.name),
            sister_labels=isolation.labels_as_created(kind, self.name, self.labels),
            container=self.target.container,
            accept=self.options.accept,
            unread=unread,
        )
