"""What a start does not pay for: names of a module that are loaded when they are asked for (`lazily`), and classes that
cost no more than a plain one: `@frozen` is `attrs.frozen`, later.

attrs writes and compiles the methods of a class, which takes a quarter of a millisecond: for every worker that starts,
and for values that most workers never meet. Here the class stays as it is written, and attrs finishes that very class
when it is first used: called, compared, shown, or asked for its attributes by attrs, cattrs or `match`. attrs itself is
imported then: a check of a program that changes little needs none of it. `field` is `attrs.field`, later. Beside them,
what a value of JSON is, and a mapping that nobody changes (`Fixed`).

`import core` loads this file, which therefore imports nothing but what Python has loaded itself.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know the name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, NoReturn, TypeVar

    from attrs import field as field
    from attrs import frozen as frozen
    from typing_extensions import TypeIs

    K = TypeVar("K")
    V_co = TypeVar("V_co", covariant=True)

    class Fixed(Mapping[K, V_co]):
        """A mapping that nobody changes. At run time it is a dict, which is quicker than any class of Python's own."""

        def __init__(self, values: Mapping[K, V_co] = {}, /) -> None: ...
        def _keep(self, key: K, value: object, /) -> object: ...
        def __getitem__(self, key: K, /) -> V_co: ...
        def __iter__(self) -> Iterator[K]: ...
        def __len__(self) -> int: ...


def lazily(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of `module`, for names that are loaded when they are first asked for.

    `names` has them by the module that they are in, as in `{"core.app": "App create_app"}`. A submodule is in itself:
    `{"core.http": "http"}`. Hide it from type checkers, which take a module with a `__getattr__` to have every name.
    """
    homes = {name: home for home, listed in names.items() for name in listed.split()}

    def get(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        value: object = import_module(home)
        if home != f"{module}.{name}":
            value = getattr(value, name)
            setattr(sys.modules[module], name, value)
        return value

    return get


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Return True if a value of JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Return True if a value of JSON is an array."""
    return isinstance(value, list)


if not TYPE_CHECKING:
    import _thread

    class Fixed(dict):
        __slots__ = ()
        _keep = dict.setdefault

        def _closed(self, *_: object, **__: object) -> NoReturn:
            raise TypeError(f"{type(self).__name__} cannot be changed. Keep what you add in req.state")

        __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = update = _closed

        def __reduce__(self) -> tuple[object, ...]:
            return dict, ([*self.items()],)  # a copy can be changed

    # One for all classes, and for a class whose base has to be finished first.
    _finishing = _thread.RLock()

    # What attrs is going to write, and what it is recognised by. A signature it does not write: who asks for one is
    # answered after the class is finished, by its `__init__`.
    _LATE = (
        "__attrs_attrs__", "__attrs_props__", "__delattr__", "__eq__", "__hash__", "__init__", "__match_args__", "__ne__",
        "__replace__", "__repr__", "__setattr__", "__signature__",
    )  # fmt: skip

    class _Late:
        """Stands for a name that attrs is going to write: finishes the class, and gives the method that attrs has
        written.
        """

        __slots__ = ("finish", "name")

        def __init__(self, name: str, finish: Callable[[], None]) -> None:
            self.name = name
            self.finish = finish

        def __get__(self, instance: object, owner: type) -> object:
            self.finish()
            return getattr(owner if instance is None else instance, self.name)

    class _Field:
        """Stands for an `attrs.field` with these options."""

        __slots__ = ("options",)

        def __init__(self, options: dict[str, object]) -> None:
            self.options = options

    def field(**options: object) -> object:
        """`attrs.field`, later."""
        return _Field(options)

    def frozen(cls: type | None = None, /, *, kw_only: bool = False) -> object:
        """`attrs.frozen(slots=False)`, later. The class may write none of the methods that attrs writes."""
        if cls is None:
            return lambda cls: frozen(cls, kw_only=kw_only)
        late: dict[str, _Late] = {}

        def finish() -> None:
            with _finishing:
                if not late:
                    return  # another thread was first
                import attrs

                for name, value in [*vars(cls).items()]:
                    if isinstance(value, _Field):
                        setattr(cls, name, attrs.field(**value.options))
                # attrs writes these two only where there is nothing.
                del cls.__match_args__, cls.__replace__
                attrs.frozen(cls, slots=False, auto_detect=False, kw_only=kw_only)
                for name, stand_in in late.items():
                    if cls.__dict__.get(name) is stand_in:
                        delattr(cls, name)
                late.clear()

        for name in _LATE:
            late[name] = stand_in = _Late(name, finish)
            setattr(cls, name, stand_in)
        return cls
