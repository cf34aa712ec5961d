"""Who may do what: users by token, rules from roles and bindings, access reviews."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import ApiError, Json, forbidden
from tests.cluster.server.store import Store

GROUP = "rbac.authorization.k8s.io"
_REVIEWS = {
    "verbs": ["create"],
    "apiGroups": ["authorization.k8s.io"],
    "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
}
_WHO = {
    "verbs": ["create"],
    "apiGroups": ["authentication.k8s.io"],
    "resources": ["selfsubjectreviews"],
}


@dataclass(frozen=True)
class User:
    """A caller."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def is_admin(self) -> bool:
        """Whether everything is allowed."""
        return "system:masters" in self.groups


@dataclass(frozen=True)
class Ask:
    """One thing that someone wants to do."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def full_resource(self) -> str:
        """``pods/exec``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def unauthorized() -> ApiError:
    """401."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def allowed_by(store: Store, user: User, ask: Ask) -> str | None:
    """The reason why it is allowed, or ``None`` where it is not."""
    if user.is_admin:
        return ""
    for reason, rule in _rules(store, user, ask.namespace):
        names = rule.get("resourceNames")
        if (
            _holds(rule.get("verbs"), ask.verb)
            and _holds(rule.get("apiGroups"), ask.group)
            and _holds(rule.get("resources"), ask.full_resource)
            and (not names or ask.name in names)
        ):
            return reason
    return None


def _holds(listed: list[str] | None, wanted: str) -> bool:
    return bool(listed) and ("*" in (listed or []) or wanted in (listed or []))


def _rules(store: Store, user: User, namespace: str) -> Iterator[tuple[str, Json]]:
    yield "", _REVIEWS
    yield "", _WHO
    cluster_roles = BY_KEY[f"clusterroles.{GROUP}"]
    bindings = [
        *((b, "") for b in store.list(BY_KEY[f"clusterrolebindings.{GROUP}"])),
        *(
            (b, namespace)
            for b in (store.list(BY_KEY[f"rolebindings.{GROUP}"], namespace) if namespace else [])
        ),
    ]
    for binding, scope in bindings:
        subject = next((s for s in binding.get("subjects") or [] if _is(s, user)), None)
        if subject is None:
            continue
        reference = binding["roleRef"]
        namespaced = reference["kind"] == "Role"
        role_kind = BY_KEY[f"roles.{GROUP}"] if namespaced else cluster_roles
        role = store.get(role_kind, scope, reference["name"])
        full = f"{binding['metadata']['name']}/{scope}" if scope else binding["metadata"]["name"]
        reason = (
            f'RBAC: allowed by {binding["kind"]} "{full}" of {reference["kind"]} '
            f'"{reference["name"]}" to {subject["kind"]} "{subject["name"]}"'
        )
        for rule in (role or {}).get("rules") or []:
            yield reason, rule


def _is(subject: Json, user: User) -> bool:
    if subject["kind"] == "User":
        return bool(subject["name"] == user.name)
    return subject["kind"] == "Group" and subject["name"] in user.groups


def check(store: Store, user: User, ask: Ask) -> None:
    """Raise 403 where the user may not."""
    if allowed_by(store, user, ask) is not None:
        return
    scope = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {ask.verb} resource "{ask.full_resource}" '
        f'in API group "{ask.group}" {scope}'
    )
    raise forbidden(ask.resource, ask.group, ask.name, why)


def access_review(store: Store, user: User, body: Json) -> Json:
    """Answer a SelfSubjectAccessReview."""
    wanted = (body.get("spec") or {}).get("resourceAttributes")
    if wanted is None:
        status: Json = {"allowed": user.is_admin}
    else:
        ask = Ask(
            wanted.get("verb", ""),
            wanted.get("group", ""),
            wanted.get("resource", ""),
            wanted.get("subresource", ""),
            wanted.get("namespace", ""),
            wanted.get("name", ""),
        )
        reason = allowed_by(store, user, ask)
        status = {"allowed": reason is not None}
        if reason:
            status["reason"] = reason
    return {**body, "metadata": {}, "status": status}


def rules_review(store: Store, user: User, body: Json) -> Json:
    """Answer a SelfSubjectRulesReview."""
    namespace = (body.get("spec") or {}).get("namespace", "default")
    rules = [rule for _, rule in _rules(store, user, namespace)]
    if user.is_admin:
        rules.insert(0, {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
    status = {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}
    return {**body, "metadata": {}, "spec": {}, "status": status}
