"""Which files of the package a command passes through, and which are on the stack at the first SGD step."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import fedrela
from fedrela.cli.main import main

PACKAGE = Path(fedrela.__file__).parent


class FirstStepError(BaseException):
    """Ends a command at its first SGD step."""


@functools.cache
def file_of(code: CodeType) -> str | None:
    """Return the file of a function of the package, from ``src/``; None for others, and for modules and classes."""
    path = Path(code.co_filename)
    if not code.co_flags & inspect.CO_OPTIMIZED or not path.is_relative_to(PACKAGE):
        return None
    return f"src/fedrela/{path.relative_to(PACKAGE).as_posix()}"


def walk(arguments: list[str], *, to_the_first_step: bool) -> dict[str, list[str]]:
    """Run a command and return the files it ``passed``, in order, and those on the ``stack`` at its first SGD step."""
    passed: dict[str, None] = {}
    stack: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        place = file_of(frame.f_code) if event == "call" else None
        if place is None:
            return
        passed.setdefault(place)
        if to_the_first_step and frame.f_code.co_qualname == "Sgd.step":
            above: FrameType | None = frame
            while above is not None:
                stack.insert(0, file_of(above.f_code) or "")
                above = above.f_back
            raise FirstStepError

    sys.argv = ["fedrela", *arguments]
    sys.setprofile(note)
    try:
        main()
    except FirstStepError:
        pass
    finally:
        sys.setprofile(None)
    return {"passed": list(passed), "stack": list(dict.fromkeys(filter(None, stack)))}


if __name__ == "__main__":
    found = walk(sys.argv[2:], to_the_first_step=sys.argv[1] == "step")
    print("\n" + json.dumps(found))
