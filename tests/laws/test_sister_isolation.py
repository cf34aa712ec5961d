"""For any labels and any selectors: no sister is made that a selector of the namespace matches."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.sisters import a_deployment, a_sister, an_object

from solscope.capture.sister import isolation, selectors
from solscope.model.sister import SisterKind, SisterOptions

KEYS = st.sampled_from(
    ["app", "tier", "experiment", "solscope-sister", "job-name", "pod-template-hash", "role"]
)
VALUES = st.sampled_from(["a", "b", "", "e1", "chat"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)
# A workload with this label is a sister itself, which is refused before any proof.
TARGET_LABELS = LABELS.filter(lambda labels: "solscope-sister" not in labels)


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt"]))
    found: dict[str, Any] = {"key": draw(KEYS), "operator": operator}
    if operator in ("In", "NotIn", "Gt"):
        found["values"] = draw(st.lists(VALUES, min_size=1, max_size=3))
    return found


STRUCTURED = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(expressions(), max_size=3)}
)


KINDS = st.sampled_from(
    ["Service", "InferencePool", "PodMonitor", "PodDisruptionBudget", "ReplicaSet", "Gadget"]
)


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(KINDS)
    selector = draw(LABELS if kind == "Service" else st.one_of(LABELS, STRUCTURED))
    return an_object(kind, draw(st.sampled_from(["x", "y"])), {"selector": selector})


@given(
    labels=TARGET_LABELS, objects=st.lists(rules(), max_size=4), kind=st.sampled_from(SisterKind)
)
def test_a_sister_is_never_matched_by_what_matched_the_target(
    labels: dict[str, str], objects: list[dict[str, Any]], kind: SisterKind
) -> None:
    target = a_deployment(labels=labels)
    sister = a_sister(target, *objects, options=SisterOptions(kind=kind, experiment="e1"))
    if sister.is_refused:
        return
    template = sister.objects[-1]["spec"]["template"]
    created = isolation.labels_as_created(kind.value, sister.name, template["metadata"]["labels"])
    for item in objects:
        selector = item["spec"]["selector"]
        if item["kind"] == "Service" and not selector:
            continue
        if item["kind"] == "ReplicaSet" and not selector:
            continue
        assert not selectors.matches(selector, created), (item, created)


@given(labels=TARGET_LABELS, objects=st.lists(rules(), max_size=4))
def test_every_refusal_for_a_match_is_true(
    labels: dict[str, str], objects: list[dict[str, Any]]
) -> None:
    sister = a_sister(a_deployment(labels=labels), *objects)
    assert sister.proof is not None
    assert sister.is_refused == bool(sister.proof.matches)
    for item in sister.proof.matches:
        assert item.matches_sister


@given(
    selector=st.dictionaries(
        st.from_regex(r"[a-z]{1,4}(/[a-z]{1,3})?", fullmatch=True),
        st.from_regex(r"[a-z0-9]{0,4}", fullmatch=True),
        max_size=4,
    ),
    labels=LABELS,
)
def test_a_selector_reads_back_from_the_text_that_shows_it(
    selector: dict[str, str], labels: dict[str, str]
) -> None:
    shown = selectors.show(selector) if selector else ""
    assert selectors.matches(selectors.parse(shown), labels) == selectors.matches(selector, labels)
