"""Declarations of a package's middleware and bindings, so that the mypy plugin and `core check` prove programs that use
them.

A distribution names an `Extension` by an entry point of the group `core.extensions`:

    [project.entry-points."core.extensions"]
    acme = "acme_core.declared:EXTENSION"

    # acme_core/declared.py
    from core.extensions import DeclaredMiddleware, Extension

    EXTENSION = Extension(
        middleware=[DeclaredMiddleware("acme_core.quota.quota", bindings={"kv_binding": "KVNamespace"})],
    )

The module of the entry point is imported by every check of a program that it is installed beside: it should import
nothing but this file. The framework declares its own in the same form, in `core.middleware.declared`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["DeclaredBinding", "DeclaredMiddleware", "Extension"]


# Tuples and not attrs classes: the mypy plugin reads them in every run, also where there is nothing to check.
class DeclaredMiddleware(NamedTuple):
    """Declares a function that makes a middleware, or a class that such a function is given.

    `function` is its full name, `acme_core.quota.quota`; `exported_as` are further names that programs import it by,
    for example `acme_core.quota`. `reads` and `provides` are names such as `req.id`, as in `core.handlers.declare`: a
    middleware that reads what only a later one provides is `core-order`. One that `requires` `req.user` is `core-user`
    where there is no authenticator. One that `answers` lets nothing run after it.

    `bindings` are the options that take a binding's name, and the Protocol of `core.bindings` it must be of:
    `{"kv_binding": "KVNamespace"}`. `first` is the one of them that may stand first, without its name.
    """

    function: str
    exported_as: Sequence[str] = ()
    reads: Sequence[str] = ()
    provides: Sequence[str] = ()
    requires: Sequence[str] = ()
    answers: bool = False
    bindings: Mapping[str, str] = {}
    first: str = ""

    @property
    def name(self) -> str:
        """Its own name, as messages show it."""
        return self.function.rpartition(".")[2]


class DeclaredBinding(NamedTuple):
    """Declares the type of a kind of binding that the framework has no type for.

    `kind` is the framework's name for the kind, for example `pipeline` (`core.bindings.kinds`). `protocol` is the full
    name of the class or Protocol that attributes of an Env are annotated with, `exported_as` further names of it.
    """

    kind: str
    protocol: str
    exported_as: Sequence[str] = ()


class Extension(NamedTuple):
    """Everything that a package declares."""

    middleware: Sequence[DeclaredMiddleware] = ()
    bindings: Sequence[DeclaredBinding] = ()
