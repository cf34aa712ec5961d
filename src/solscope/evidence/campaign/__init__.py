"""The campaign folder ``campaigns/<slug>/``: its files in, a ``Campaign`` out, and back.

``folder`` knows where each file lies and writes whole files only; ``config``, ``context`` and
``findings`` read what people wrote; ``cell`` writes and reads ``ncu_kernels.json``; ``bundle``
finds what an evidence bundle holds of ncu; ``handoff`` keeps the part of ``HANDOFF.md`` that is
ours.
"""
