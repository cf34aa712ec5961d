"""Steps with receipts: what was done is on disk before the next step begins."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solscope.errors import CaptureError, SolscopeError, UsageError
from solscope.evidence import receipts
from solscope.evidence.bundle import COMMANDS, Bundle
from solscope.evidence.running import Finished
from solscope.model.evidence import Receipt

INTERRUPTED = 130
BUG = 70
Facts = Mapping[str, Any]


@dataclass(slots=True)
class Journal:
    """The bundle's commands as named steps, each with an answer that is a JSON object.

    ``run`` tells its steps from commands that people have recorded under such names. ``taken``
    are those that have a receipt, ``begun`` the names of all that may have done something.
    """

    bundle: Bundle
    progress: Callable[[str], None]
    run: str
    answers: dict[str, Facts] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    begun: set[str] = field(default_factory=set)

    @classmethod
    def opened(cls, bundle: Bundle, progress: Callable[[str], None], run: str) -> Journal:
        """A journal that knows the steps of ``run`` that the bundle already holds."""
        journal = cls(bundle, progress, run)
        bundle.drop_unfinished()
        for receipt in receipts.read(bundle.folder):
            name = receipt.step.partition("-")[2]
            if receipt.command is None or receipt.run != run:
                continue
            journal.taken.append(receipt.step)
            journal.begun.add(name)
            if receipt.is_ok:
                journal.answers[name] = _answer(bundle, receipt)
        return journal

    def has(self, step: str) -> bool:
        """Whether the step has ended well."""
        return step in self.answers

    def take(self, step: str, argv: Sequence[str], action: Callable[[], Facts]) -> Facts:
        """Do a step and record it, however it ends.

        ``argv`` is the command that shows it. Raises CaptureError that names the receipt;
        an interruption is recorded and goes on.
        """
        begun = self.bundle.now()
        self.progress(step)
        self.begun.add(step)
        try:
            answer = action()
        except SolscopeError as error:
            code = error.exit_code
            receipt = self._record(step, argv, begun, "", f"{error}\n", code)
            raise CaptureError(
                f"{step}: {error.what}",
                where=error.where,
                hint=error.hint,
                receipt=receipt,
            ) from error
        except KeyboardInterrupt:
            self._record(step, argv, begun, "", "interrupted\n", INTERRUPTED)
            raise
        except Exception as error:
            self._record(step, argv, begun, "", f"{type(error).__name__}: {error}\n", BUG)
            raise
        text = json.dumps(answer, indent=2, default=str) + "\n"
        self._record(step, argv, begun, text, "", 0)
        self.answers[step] = answer
        return answer

    def once(self, step: str, argv: Sequence[str], action: Callable[[], Facts]) -> Facts:
        """Do a step unless it has ended well before; its answer."""
        return self.answers[step] if self.has(step) else self.take(step, argv, action)

    def _record(
        self, step: str, argv: Sequence[str], begun: Any, out: str, err: str, code: int
    ) -> str:
        finished = Finished(stdout=out.encode(), stderr=err.encode(), exit_code=code)
        try:
            name, _ = self.bundle.record(step, argv, finished, begun, self.run)
        except (OSError, UsageError) as error:
            what = error.what if isinstance(error, UsageError) else error.strerror
            raise CaptureError(
                f"the receipt of {step} cannot be written: {what}",
                where=str(self.bundle.folder),
                hint=f"make room, then: solscope capture --resume {self.bundle.folder}",
            ) from error
        self.taken.append(name)
        return name


def _answer(bundle: Bundle, receipt: Receipt) -> Facts:
    path = bundle.folder / COMMANDS / f"{receipt.step}.stdout"
    try:
        answer = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}
