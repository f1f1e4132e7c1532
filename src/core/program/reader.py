"""Envs read from plain syntax trees: their attributes with their kinds."""

from __future__ import annotations

import functools

from core.program.annotations import Annotations
from core.program.classes import ClassRef
from core.program.envs import EnvAttribute, EnvShape, no_problem
from core.program.findings import Location
from core.program.modules import Modules
from core.program.variables import inside_problem


class Reader(Annotations):
    """Reads the Envs of one program."""

    def __init__(self, modules: Modules, named: frozenset[str] | None = None) -> None:
        super().__init__(modules, named)
        self._shapes: dict[ClassRef, EnvShape] = {}

    def shape(self, class_: ClassRef, *, partial: bool = False) -> EnvShape:
        """An Env, or a Protocol that stands for one, as `core.program.envs` wants it."""
        found = self._shapes.get(class_)
        if found is not None:
            return found
        file = str(class_.module.path)
        home = Location(file, class_.node.lineno, class_.node.col_offset + 1)
        attributes: list[EnvAttribute] = []
        for field in self.fields(class_):
            annotation = self.annotation(field.annotation, field.owner.body)
            if annotation.class_var:
                continue
            own = field.owner == class_
            attributes.append(
                EnvAttribute(
                    name=field.alias,
                    kind=annotation.kind,
                    shown=annotation.shown,
                    location=Location(file, field.line, field.column) if own else home,
                    attribute=field.name,
                    optional=annotation.optional or field.has_default,
                    arguments=annotation.arguments,
                    literals=annotation.literals,
                    converted=field.converted,
                    inherited=not own and self.is_env(field.owner),
                    inside=functools.partial(inside_problem, self, field.annotation, field.owner.body)
                    if annotation.kind in ("list", "dict", "table")
                    else no_problem,
                )
            )
        shape = self._shapes[class_] = EnvShape(class_.node.name, home, attributes, partial)
        return shape
