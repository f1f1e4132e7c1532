"""The one place that every call of a binding passes: where a hook sees it before and after, or answers instead.

A method of a binding's Protocol carries `@binding_call`. Without a hook that costs one more Python call; with one, the
engine's method runs as the rest of the hook. Fakes record and fail calls so, `core dev` notes them. Methods that return
at once (`prepare`, `bind`, a namespace's `get`) do not pass: what they return has the hook of the binding it came from.

This file knows no binding. A worker loads it, so it stays small.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

Proceed: TypeAlias = Callable[[], Awaitable[Any]]
"""Runs the rest of a call: the next hook, or the binding's own method."""


class BindingCall(NamedTuple):
    """A call of a binding: `args` and `options` as the caller wrote them.

    `binding` is its name on the Env, `kind` one of `core.bindings.kinds`. `target` is the object the method was called
    on, where that is not the binding itself: `(sql, *values)` of a statement, `(key, upload_id)` of an upload in parts,
    `(name,)` (or the id) of a Durable Object.
    """

    binding: str
    kind: str
    method: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    target: tuple[Any, ...] = ()
    function: Callable[..., Any] | None = None
    """The Protocol's method, whose signature `canonical` follows; None where no Protocol has the method."""

    def canonical(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments and options however the caller wrote them.

        Every parameter that can be given by position is in the arguments, with its default; of the others, those that
        are not None are the options.
        """
        function: Any = self.function
        if function is None:
            return self.args, dict(self.options)
        code = function.__code__
        named: tuple[str, ...] = code.co_varnames[1 : code.co_argcount]
        values: tuple[Any, ...] = function.__defaults__ or ()
        defaults = dict(zip(reversed(named), reversed(values), strict=False))
        given: dict[str, Any] = {**(function.__kwdefaults__ or {}), **self.options}
        rest = (name for name in named[len(self.args) :] if name in given or name in defaults)
        args = (*self.args, *[given.pop(name) if name in given else defaults[name] for name in rest])
        return args, {name: value for name, value in given.items() if value is not None}


CallHook: TypeAlias = Callable[[BindingCall, Proceed], Awaitable[Any]]
"""Sees the calls of a binding. It returns the call's answer, which `await proceed()` gives, or raises."""


class BoundHook(NamedTuple):
    """A hook, which binding's calls it sees, and the hook that was there before it."""

    hook: CallHook
    binding: str
    kind: str
    inner: BoundHook | None = None

    def __call__(
        self,
        method: str,
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        proceed: Proceed,
        *,
        target: tuple[Any, ...] = (),
        function: Callable[..., Any] | None = None,
    ) -> Awaitable[Any]:
        """Pass a call through the hook, then through those that were there before it."""
        call = BindingCall(self.binding, self.kind, method, args, options, target, function)
        return self.hook(call, proceed if self.inner is None else self.inner._rest(call, proceed))

    def _rest(self, call: BindingCall, proceed: Proceed) -> Proceed:
        """The rest of a call for the hook around this one."""
        return lambda: self(call.method, call.args, call.options, proceed, target=call.target, function=call.function)

    def around(
        self, method: str, function: Callable[..., Awaitable[Any]], target: tuple[Any, ...] = ()
    ) -> Callable[..., Awaitable[Any]]:
        """`function`, with its calls passed through the hook as those of `method`: one that no class declares."""

        def call(*args: Any, **options: Any) -> Awaitable[Any]:
            return self(method, args, options, lambda: function(*args, **options), target=target)

        return call


class Hookable:
    """The base class of every engine with calls to pass: of a binding, a statement, an upload, a stub."""

    _hook: BoundHook | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in vars(cls).items():
            # So that Python's error for wrong arguments names the method that was called.
            if isinstance(method, FunctionType) and hasattr(cls, public := name.removeprefix("_")):
                method.__qualname__ = f"{cls.__qualname__}.{public}"

    def _call_target(self) -> tuple[Any, ...]:
        """Return the target of the call, for hooks: see `BindingCall.target`."""
        return ()


def add_hook(binding: object, hook: CallHook, *, name: str, kind: str) -> None:
    """Let every later call of `binding` pass `hook` first, then the hooks that it has already.

    `name` and `kind` are the binding's for `hook`. Any value but a `Hookable` is left as it is: a variable, a
    secret, a stand-in of the application's own.
    """
    if isinstance(binding, Hookable):
        binding._hook = BoundHook(hook, name, kind, binding._hook)


def has_hook(binding: Hookable, hook: CallHook) -> bool:
    """Return True if calls of `binding` pass `hook` already."""
    found = binding._hook
    while found is not None and found.hook is not hook:
        found = found.inner
    return found is not None
