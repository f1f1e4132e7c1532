"""Everything that a call of a function does: its own effects, and those of everything that it calls, less the errors
caught.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from core.openapi.facts import Call, ClassFacts, Effect, FunctionFacts, ModuleFacts, Raise, Read, Schema
from core.openapi.failures import is_caught

__all__ = ["Found", "Program"]


@attrs.frozen
class Found:
    """An effect with the file of the function that has it; "" for one of the framework's own."""

    effect: Effect
    path: str = ""
    function: str = ""
    errors: Sequence[Mapping[str, str]] = ()
    """The error handlers of the routers around it, the nearest first (`core.openapi.handled`)."""


class Program:
    """The facts of a program, by name."""

    def __init__(self, modules: Iterable[ModuleFacts]) -> None:
        self.functions: dict[str, tuple[FunctionFacts, str]] = {}
        """Each function with the file that it is in."""
        self.classes: dict[str, ClassFacts] = {}
        self.docs: dict[str, str | None] = {}
        self.details: dict[str, Mapping[str, Schema]] = {}
        self._overrides: dict[str, list[str]] = {}
        self._flat: dict[str, list[Found]] = {}
        for module in modules:
            self.docs[module.module] = module.doc
            for function in module.functions:
                self.functions[function.name] = (function, module.path)
            self.classes.update(module.classes)
            self.details.update(module.details)
            for method, others in module.overrides.items():
                self._overrides.setdefault(method, []).extend(others)

    def effects(self, name: str) -> list[Found]:
        """The effects of a function and of all that it calls, without the errors that are caught on the way."""
        if name in self._flat:
            return self._flat[name]
        self._flat[name] = []  # one that calls itself has nothing new to say
        found = self.functions.get(name)
        result: list[Found] = []
        for effect in found[0].effects if found is not None else ():
            match effect:
                case Call():
                    for inner in self.effects(effect.target):
                        raised = inner.effect
                        if isinstance(raised, Raise):
                            if effect.classes and inner.function == effect.target:
                                raised = attrs.evolve(raised, classes=effect.classes)
                                inner = attrs.evolve(inner, effect=raised, function=name)
                            if is_caught(raised, effect.caught):
                                continue
                        elif isinstance(raised, Read) and effect.caught:
                            inner = attrs.evolve(
                                inner, effect=attrs.evolve(raised, caught=(*raised.caught, *effect.caught))
                            )
                        result.append(inner)
                case Raise() if is_caught(effect, effect.caught):
                    pass
                case _:
                    result.append(Found(effect, found[1] if found is not None else "", name))
        for other in self._overrides.get(name, ()):
            result += self.effects(other)
        self._flat[name] = result
        return result
