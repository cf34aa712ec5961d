"""The copy writes nothing where production reads it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sisters import a_container, a_deployment, a_sister, codes, pod_spec, server_of

from solscope.capture.sister import caches
from solscope.model.sister import SisterOptions

ROOT = "/root"
CLAIM = {"name": "store", "persistentVolumeClaim": {"claimName": "models"}}
OWN = {"name": "store", "emptyDir": {}}


def moved(
    path: str, *, volume: dict[str, Any] = CLAIM, read_only: bool = False, **env: str
) -> set[str]:
    """The variables that point into the pod, of a server with a volume at ``path``."""
    mount = {"name": "store", "mountPath": path, "readOnly": read_only}
    container = a_container(
        env=[{"name": name, "value": value} for name, value in env.items()], volumeMounts=[mount]
    )
    server = server_of(a_sister(a_deployment(container, volumes=[volume])))
    return {
        entry["name"]
        for entry in server.get("env", ())
        if str(entry.get("value")).startswith(caches.FOLDER)
    }


@pytest.mark.parametrize(
    ("path", "env", "expected"),
    [
        ("/models", {"VLLM_CACHE_ROOT": "/models/.vllm"}, {"VLLM_CACHE_ROOT"}),
        ("/models/", {"TRITON_CACHE_DIR": "/models/../models/t"}, {"TRITON_CACHE_DIR"}),
        ("/models", {"VLLM_CACHE_ROOT": "/modelsets/.vllm"}, set()),
        # Without the variable it lies in the home folder.
        (f"{ROOT}/.cache/vllm", {}, {"VLLM_CACHE_ROOT"}),
        (f"{ROOT}/.cache/huggingface", {}, set()),
        ("/home/user/.triton", {}, {"TRITON_CACHE_DIR"}),
        ("/data", {"HOME": "/data"}, set(caches._VARIABLES) - {"TORCHINDUCTOR_CACHE_DIR"}),
        (
            "/c",
            {"XDG_CACHE_HOME": "/c", "HOME": "/h"},
            {
                "VLLM_CACHE_ROOT",
                "FLASHINFER_WORKSPACE_BASE",
                "SGLANG_DG_CACHE_DIR",
                "TORCH_EXTENSIONS_DIR",
            },
        ),
    ],
)
def test_compiled_kernels_of_a_shared_folder_stay_in_the_pod(
    path: str, env: dict[str, str], expected: set[str]
) -> None:
    assert moved(path, **env) == expected
    # What only the pod has, or cannot be written to, may stay.
    assert moved(path, volume=OWN, **env) == set()
    assert moved(path, read_only=True, **env) == set()


def test_the_folder_is_there_and_has_room_beside_a_limit() -> None:
    container = a_container(
        volumeMounts=[{"name": "store", "mountPath": f"{ROOT}/.cache"}],
        resources={"limits": {"nvidia.com/gpu": 1, "ephemeral-storage": "10Gi"}},
    )
    sister = a_sister(a_deployment(container, volumes=[CLAIM]))
    assert {"name": "solscope-caches", "mountPath": caches.FOLDER} in server_of(sister)[
        "volumeMounts"
    ]
    sidecar = pod_spec(sister)["initContainers"][1]
    assert sidecar["resources"]["limits"]["ephemeral-storage"] == "15Gi"


def test_read_only_claims_leave_the_compilers_a_place_to_write() -> None:
    container = a_container(volumeMounts=[{"name": "store", "mountPath": f"{ROOT}/.cache"}])
    options = SisterOptions(read_only_claims=True)
    sister = a_sister(a_deployment(container, volumes=[CLAIM]), options=options)
    assert "VLLM_CACHE_ROOT" in {entry["name"] for entry in server_of(sister)["env"]}


def an_init(**more: Any) -> dict[str, Any]:
    mounts = [{"name": "store", "mountPath": "/models"}]
    return {"name": "fetch", "image": "tools", "volumeMounts": mounts, **more}


def test_an_init_container_that_writes_to_a_shared_volume_is_warned_of() -> None:
    sister = a_sister(a_deployment(volumes=[CLAIM], initContainers=[an_init()]))
    assert "sister-init-container" in codes(sister)
    options = SisterOptions(read_only_claims=True)
    safe = a_sister(a_deployment(volumes=[CLAIM], initContainers=[an_init()]), options=options)
    assert "sister-init-container" not in codes(safe)
    own = a_sister(a_deployment(volumes=[OWN], initContainers=[an_init()]))
    assert "sister-init-container" not in codes(own)
