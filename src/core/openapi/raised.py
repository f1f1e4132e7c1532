"""The errors that expressions stand for, and the statuses that they may be.

An error is made of the arguments of its class, through the `__init__` of classes of the program's own; of one that is
handed over or returned the same is known. Of any other no more is known than what its class gives all of its instances.
"""

from __future__ import annotations

from http import HTTPStatus

import attrs
from mypy.nodes import ARG_STAR2, CallExpr, Expression, FuncDef, NameExpr, RefExpr, SuperExpr, TypeInfo

from core.errors import phrase_of
from core.openapi.calls import Calls
from core.openapi.facts import TEXT, Raise
from core.openapi.failures import CORE_ERROR, EXCEPTION, INVALID, UNAUTHORIZED, object_of
from core.openapi.solving import instance_of
from core.openapi.trees import within
from core.openapi.values import Frame, Target, Value, bounded, once
from core.validation.schema import Schema, any_of, without_null


class Raised(Calls):
    """The errors behind the expressions of a program."""

    @once
    def errors_of(self, value: Value) -> tuple[Raise, ...]:
        """The errors that a value stands for, as they are known when it is asked for the first time."""
        return value.errors or (self.errors(*value.place) if value.place is not None else ())

    @bounded(())
    def errors(self, expression: Expression, frame: Frame) -> tuple[Raise, ...]:
        """The errors that an expression stands for, as far as they are known."""
        match expression:
            case NameExpr(node=TypeInfo() as made) if made.has_base(EXCEPTION):
                return (self.error_made(None, made, frame),)
            case CallExpr(callee=RefExpr(node=TypeInfo() as made)) if made.has_base(EXCEPTION):
                return (self.error_made(expression, made, frame),)
            case NameExpr():
                for at in frame.chain():
                    if expression.node is not None and expression.node in at.errors:
                        return at.errors[expression.node]
            case _:
                pass
        found = tuple(each for way in self.ways(expression, frame) for each in self.errors_of(way))
        return found or tuple(
            self.error_of(each) for each in self.infos_of(expression, frame) if each.has_base(EXCEPTION)
        )

    def for_clients(self, expression: Expression, frame: Frame) -> tuple[Raise, ...]:
        """The same for an expression that stands for nothing but errors for clients; else none."""
        errors = self.errors(expression, frame)
        return errors if all(CORE_ERROR in each.classes for each in errors) else ()

    def error_made(self, call: CallExpr | None, made: TypeInfo, frame: Frame, me: Value | None = None) -> Raise:
        """The error that a class makes of the arguments of a call; `me` is what `super().__init__(…)` is called for."""
        classes = _classes(made)
        above = [base for base in made.mro if "__init__" in base.names] if CORE_ERROR in classes else []
        if above and above[0].fullname.startswith("core."):
            return attrs.evolve(self._framework_error(above[0].fullname, call, frame), classes=classes)
        node = above[0].names["__init__"].node if above else None
        if isinstance(node, FuncDef) and node in self.homes:
            given, named = self.arguments(call, frame)
            me = me or Value(type=instance_of(made))
            inside = self.enter(Target(node, None, (me, *given), named))
            for each in within(node.body):
                if isinstance(each, CallExpr) and isinstance(each.callee, SuperExpr) and each.callee.name == "__init__":
                    return attrs.evolve(self.error_made(each, above[1], inside, me), classes=classes)
        return self.error_of(made)

    def _framework_error(self, base: str, call: CallExpr | None, frame: Frame) -> Raise:
        """An error of the framework's own classes, by the arguments that it is made of."""
        given, named = self.arguments(call, frame)
        stated = [self.schema_of(named.pop("headers"))] if "headers" in named else []
        known = self.schemas.merged([object_of({}), *stated])["properties"]
        headers = {key: each if "const" in each else TEXT for key, each in known.items()}
        if base == "core.errors.AuthenticationError":
            challenge = self.schema_of(given[0]) if given else {"const": "Bearer"}
            return attrs.evolve(UNAUTHORIZED, headers={"WWW-Authenticate": challenge}, line=call.line if call else 0)
        if base == "core.errors.ValidationError":
            status = self.statuses(named["status"]) if "status" in named else (422,)
            message = self.schema_of(named["message"]) if "message" in named else INVALID.message
            return attrs.evolve(INVALID, status=status, message=message, headers=headers)
        statuses = self.statuses(given[0]) if given else ()
        phrases: Schema = any_of({"const": phrase_of(each)} for each in statuses) if statuses else TEXT
        parts = [object_of({name: self.schema_of(value) for name, value in named.items()})]
        for expression, kind in zip(call.args, call.arg_kinds, strict=True) if call is not None else ():
            if kind == ARG_STAR2:
                parts.append(self.schema_of(Value(expression, frame)))
        metadata = self.schemas.merged(parts)
        message = without_null(self.schema_of(given[1]), phrases) if len(given) > 1 else phrases
        return Raise(status=statuses, message=message, metadata=metadata, headers=headers)

    def error_of(self, made: TypeInfo) -> Raise:
        """An error of which no more is known than its class, and what that gives all of its instances."""
        status, message = (self.class_constant(made, name) for name in ("status", "message"))
        return Raise(
            status=(status,) if isinstance(status, int) else (),
            message={"const": message} if isinstance(message, str) else TEXT,
            classes=_classes(made),
        )

    def class_constant(self, info: TypeInfo | None, name: str) -> object:
        """What a class gives all of its instances under a name; None where that is not known."""
        assigned = self.class_variable(info, name) if info is not None else None
        found = self.constants(Value(*assigned)) if assigned is not None else ()
        return found[0][0] if len(found) == 1 else None

    # -- statuses

    def statuses(self, value: Value) -> tuple[int, ...]:
        """The statuses that a value may be; () where they are not known."""
        constants = self.constants(value)
        known = dict.fromkeys(each for (each,) in constants if isinstance(each, int) and not isinstance(each, bool))
        is_any = len(known) == len(HTTPStatus)  # of the type alone, which says no more than int does
        return tuple(known) if len(known) == len({*constants}) and not is_any else ()


def _classes(info: TypeInfo) -> tuple[str, ...]:
    return tuple(base.fullname for base in info.mro)
