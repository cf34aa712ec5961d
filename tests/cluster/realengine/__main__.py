"""``python -m tests.cluster.realengine``: make what ``make cluster-vllm`` needs, once."""

from tests.cluster.realengine import environment

print(environment.make())
