"""A kernel's name in, what it is out."""

from __future__ import annotations

from collections.abc import Sequence

from solscope.model.kernel import DtypePattern, FamilyPattern, KernelIdentity

UNKNOWN = "unknown"

HEAD = 240
"""Characters of a demangled name that are looked at. Deeper template arguments name parts of a
kernel, not the kernel, and CUTLASS names run to thousands of characters."""


def classify(
    name: str,
    name_full: str,
    patterns: Sequence[FamilyPattern],
    dtypes: Sequence[DtypePattern],
) -> KernelIdentity:
    """The identity that the first matching pattern gives; ``unknown`` where none matches.

    The function name is tried before the demangled one, whose template arguments may name
    other kernels.
    """
    name, head = name.lower(), name_full[:HEAD].lower()
    dtype = next((d.dtype for d in dtypes if d.match.search(name)), None) or next(
        (d.dtype for d in dtypes if d.match.search(head)), None
    )
    for pattern in patterns:
        if pattern.match.search(name) or pattern.match.search(head):
            return KernelIdentity(
                family=pattern.family,
                category=pattern.category,
                role=pattern.role,
                dtype=dtype,
                pattern=pattern.id,
                is_collective=pattern.is_collective,
            )
    return KernelIdentity(family=UNKNOWN, category="Other", role=UNKNOWN, dtype=dtype, pattern=None)
