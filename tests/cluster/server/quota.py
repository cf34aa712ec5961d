"""Resource quotas over pods: refused where a request would go over."""

from __future__ import annotations

from fractions import Fraction

from tests.cluster.server import quantity
from tests.cluster.server.resources import BY_KEY
from tests.cluster.server.status import Json, forbidden
from tests.cluster.server.store import Store

PODS = BY_KEY["pods"]
QUOTAS = BY_KEY["resourcequotas"]


def usage(spec: Json) -> dict[str, Fraction]:
    """What a pod counts for, by the quota's names."""
    used: dict[str, Fraction] = {"pods": Fraction(1), "count/pods": Fraction(1)}
    for container in spec.get("containers") or []:
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        for prefix, amounts in (
            ("requests.", {**limits, **(resources.get("requests") or {})}),
            ("limits.", limits),
        ):
            for name, amount in amounts.items():
                key = prefix + name
                used[key] = used.get(key, Fraction(0)) + quantity.parse(amount)
    for name in ("cpu", "memory"):
        if f"requests.{name}" in used:
            used[name] = used[f"requests.{name}"]
    return used


def used_in(store: Store, namespace: str, names: list[str]) -> dict[str, Fraction]:
    """What the live pods of a namespace count for."""
    total = {name: Fraction(0) for name in names}
    for pod in store.list(PODS, namespace):
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        for name, amount in usage(pod["spec"]).items():
            if name in total:
                total[name] += amount
    return total


def check(store: Store, pod: Json) -> None:
    """Raise 403 where a new pod would exceed a quota of its namespace."""
    meta = pod["metadata"]
    wanted = usage(pod["spec"])
    for entry in store.list(QUOTAS, meta["namespace"]):
        hard = {k: quantity.parse(v) for k, v in (entry["spec"].get("hard") or {}).items()}
        used = used_in(store, meta["namespace"], list(hard))
        over = [n for n in sorted(hard) if n in wanted and used[n] + wanted[n] > hard[n]]
        if over:
            words = [
                f"{title}: {','.join(f'{n}={quantity.show(amounts[n])}' for n in over)}"
                for title, amounts in (("requested", wanted), ("used", used), ("limited", hard))
            ]
            name = entry["metadata"]["name"]
            why = f"exceeded quota: {name}, {', '.join(words)}"
            raise forbidden("pods", "", meta["name"], why)
