"""The binding of a class of Durable Objects: its ids, and the stubs that call an object from afar."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from core.backends.embedded.clone import CloneError, copy_value
from core.backends.embedded.durable_object.arguments import clone_error
from core.backends.embedded.durable_object.ids import ObjectId, check_jurisdiction, id_from_digits, id_from_name, new_id
from core.backends.embedded.durable_object.objects import Objects, objects_of
from core.backends.embedded.store import Store
from core.bindings.calls import BoundHook, Hookable
from core.bindings.durable_object import (
    DurableObject,
    DurableObjectId,
    DurableObjectJurisdiction,
    DurableObjectLocationHint,
    DurableObjectNamespace,
    can_be_called,
)

if TYPE_CHECKING:
    from core.http import Request, Response

D = TypeVar("D", bound=DurableObject[Any])


class EmbeddedDurableObjectNamespace(Hookable, DurableObjectNamespace[D]):
    """The objects of the class `cls` under `name` in `store`. Two namespaces of one name are one.

    `env` is the Env that the objects get, or a function that gives it when the first object is made: the Env has the
    namespace in it, so the namespace comes first. Call `start` once the event loop runs, so that alarms from before a
    restart go off.
    """

    _jurisdiction: DurableObjectJurisdiction | None = None

    def __init__(self, store: Store, name: str, cls: type[D], env: object = None) -> None:
        self.objects: Objects = objects_of(store, name, cls, env)

    @classmethod
    def over(cls, objects: Any, jurisdiction: DurableObjectJurisdiction | None = None) -> Self:
        """The namespace of `objects` that are there already, in this process or another one."""
        made = object.__new__(cls)
        made.objects, made._jurisdiction = objects, jurisdiction
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.objects.cls.__name__} in {self.objects.location}>"

    def start(self) -> None:
        """Take up the alarms that were set before. Call it with the event loop running."""
        self.objects.start()

    async def close(self) -> None:
        """End every object, after the calls that are running."""
        await self.objects.close()

    def id_from_name(self, name: str) -> ObjectId:
        return id_from_name(self.objects.name, self._jurisdiction, name)

    def id_from_string(self, id: str) -> ObjectId:
        return id_from_digits(self.objects.name, self._jurisdiction, str(id).lower())

    def new_unique_id(self, *, jurisdiction: DurableObjectJurisdiction | None = None) -> ObjectId:
        return new_id(self.objects.name, jurisdiction or self._jurisdiction)

    def get(self, id: DurableObjectId, *, location_hint: DurableObjectLocationHint | None = None) -> D:
        known = self.id_from_string(str(id))
        named = ObjectId(known.digits, id.name, known.jurisdiction)
        # A stub has those methods of the class that can be called from afar, and nothing else.
        return cast("D", Stub(self.objects, named, self._hook))

    def get_by_name(self, name: str, *, location_hint: DurableObjectLocationHint | None = None) -> D:
        return self.get(self.id_from_name(name), location_hint=location_hint)

    def jurisdiction(self, jurisdiction: DurableObjectJurisdiction) -> EmbeddedDurableObjectNamespace[D]:
        check_jurisdiction(jurisdiction)
        confined = self.over(self.objects, jurisdiction)
        confined._hook = self._hook
        return confined


class Stub:
    """An object from afar: its id, `fetch`, and the public async methods of its class."""

    __slots__ = ("_hook", "_objects", "id")

    def __init__(self, objects: Objects, id: ObjectId, hook: BoundHook | None) -> None:
        self._objects = objects
        self._hook = hook
        self.id: ObjectId = id

    @property
    def name(self) -> str | None:
        return self.id.name

    def __repr__(self) -> str:
        return f"<stub of {self._objects.cls.__name__} {self.id.name or self.id}>"

    async def fetch(self, request: Request, /) -> Response:
        response: Response = await self._call("fetch", (request,), {})
        return response

    def __getattr__(self, method: str) -> Callable[..., Awaitable[object]]:
        cls = self._objects.cls
        if not can_be_called(cls, method):
            why = "is not public" if method.startswith("_") else "is not an async method of the class"
            raise AttributeError(
                f"{cls.__name__}.{method} cannot be called on a stub: it {why}. A stub has the public async methods, "
                "fetch, id and name",
                name=method,
                obj=self,
            )
        return partial(self._remote, method)

    async def _remote(self, method: str, /, *args: object, **options: object) -> object:
        def copied(value: object, what: str) -> Any:
            try:
                return copy_value(value, what)
            except CloneError as error:
                raise clone_error(f"{self._objects.cls.__name__}.{method}: {error}") from error

        args, options = copied(args, "the arguments"), copied(options, "the arguments")
        return copied(await self._call(method, args, options), "the result")

    async def _call(self, method: str, args: tuple[object, ...], options: dict[str, object]) -> Any:
        proceed = partial(self._objects.call, self.id, method, args, options)
        if self._hook is None:
            return await proceed()
        return await self._hook(method, args, options, proceed, target=(self.id.name or str(self.id),))
