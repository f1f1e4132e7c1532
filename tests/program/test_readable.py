"""Types that nothing can be read as: `core check` says of each what the program would say, and of no other anything."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from core.config.load import load_all
from core.errors import DeveloperError
from core.errors.mistakes import unreadable
from core.program.proof import check_program
from core.program.readable import NOT_READ
from core.validation.structure import hook_of

TYPES = """\
import collections
import datetime
import enum
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, List, Literal, NamedTuple, NewType, Optional, Protocol, TypedDict, TypeVar, Union, Unpack
import attrs

T = TypeVar("T")
class Plain:
    pass
class Proto(Protocol):
    x: int
class Box(Generic[T]):
    x: T
class Text(str):
    pass
class Color(enum.Enum):
    RED = "red"
class Pair(NamedTuple):
    a: int
class Dict(TypedDict):
    plain: Plain
class Other(TypedDict):
    x: int
@dataclass
class Data:
    plain: "Plain"
@dataclass
class Good:
    x: int
@dataclass(frozen=True)
class More:
    x: int
    y: int = 0
@attrs.frozen
class Card:
    number: str
@attrs.frozen
class Bill:
    number: str
@attrs.frozen
class Cash:
    number: str
    coins: int = 0
@attrs.frozen
class Check(Card):
    bank: str
@attrs.frozen
class A:
    kind: Literal["a"]
@attrs.frozen
class B:
    kind: Literal["b"]
@attrs.frozen
class AB:
    kind: Literal["a", "b"]
@attrs.frozen
class Renamed:
    number: str = attrs.field(alias="no")
@attrs.define
class Red:
    kind: Literal[Color.RED]
@attrs.define
class Empty:
    WIDTH: ClassVar[int] = 1
@attrs.frozen
class Page(Generic[T]):
    items: list[T]
@attrs.frozen
class Node:
    next: "Node | None"
    plain: Plain
@attrs.frozen
class Converted:
    at: Plain = attrs.field(converter=lambda value: Plain())
@attrs.frozen
class Order:
    paid: Card | Bill
@attrs.frozen
class Told:
    paid: list[Card | Check]
    for_: dict[str, datetime.date]
@attrs.frozen
class Later:
    after: datetime.timedelta
Payment = Card | Bill
UserId = NewType("UserId", int)
"""
GIVEN = """
Plain Proto Box Box[int] Text Color Pair Dict Other Data Good Card Node Converted Order Told Later Payment UserId Any
object bytes int list dict list[object] dict[str,object] list[Plain] dict[str,Plain] Plain|None Optional[Plain] Plain|int
Card|Bill Union[Card,Bill] Optional[Union[Card,Bill]] Card|Bill|None Card|Bill|int Card|Cash Bill|Cash|Check Card|Check
A|B A|AB A|Card A|B|AB Card|Renamed Red|A Empty|Card Empty|Cash Page[int]|Page[str] Page[int] Payment|None list[Payment]
Annotated[Payment,1] Card|Good Good|More Good|More|None Data|Good Card|Other Card|Color Order|Told Sequence[Plain] tuple[int,Plain] tuple[int,*tuple[str,...]] tuple[Unpack[tuple[int,...]],str] Mapping[str,Order]
List[Later] collections.deque[Plain] pathlib.Path Callable[[int],int] Iterable[int] type[int]
"""


def raised(type_: Any) -> str | None:
    try:
        hook_of(type_, "client")
    except (DeveloperError, TypeError) as error:
        return str(error)
    return None


def names(place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of a module that is imported from a file."""
    spec = importlib.util.spec_from_file_location("types_of_the_table", place)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, made)
    spec.loader.exec_module(made)
    return vars(made)


def told(place: Path, body: str) -> dict[int, str]:
    """The findings of a handler by their line, the first of its body counted as 0."""
    (place / "wrangler.toml").write_text(
        'main = "main.py"\n[[d1_databases]]\nbinding = "DB"\n[[kv_namespaces]]\nbinding = "KV"\n'
    )
    (place / "given.py").write_text(TYPES)
    head = (
        "from core import Bindings, D1Database, KVNamespace, Request, Response, create_app, cursor_of\n"
        f"from given import {', '.join(re.findall(r'(?m)^(?:class )?([A-Z][A-Za-z]*)(?=[(:]| = )', TYPES))}\n"
        "from typing import Annotated, Any, List, Optional, Union, Unpack\n"
        "from collections.abc import Callable, Iterable, Mapping, Sequence\n"
        "import attrs, collections, pathlib\n"
        "@attrs.frozen\nclass Env(Bindings):\n    DB: D1Database\n    KV: KVNamespace\napp = create_app(Env)\n"
        '@app.post("/:id")\nasync def add(req: Request[Env], res: Response) -> None:\n'
    )
    (place / "main.py").write_text(head + body)
    lines = head.count("\n") + 1
    return {
        f.line - lines: f.message for f in check_program(load_all(place / "wrangler.toml")) if f.code == "core-handler"
    }


def test_a_type_is_found_by_the_words_that_it_would_fail_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = GIVEN.split()
    found = told(tmp_path, "".join(f"    await req.json({type_})\n" for type_ in types))
    given = names(tmp_path / "given.py", monkeypatch)
    fails = {type_: raised(eval(type_, given)) for type_ in types}
    assert {type_: found.get(line) for line, type_ in enumerate(types)} == fails
    assert sum(map(bool, fails.values())) > 25


@pytest.mark.parametrize("name", sorted(NOT_READ))
def test_a_class_of_python_that_is_not_read_is_not(name: str) -> None:
    place, _, last = name.rpartition(".")
    assert raised(getattr(importlib.import_module(place), last))


@pytest.mark.parametrize(
    "read",
    [
        "await req.json(Payment)",
        "req.query.parse(Payment)",
        "req.params.parse(Payment)",
        "(await req.form()).parse(Payment)",
        "form = await req.form(); form.parse(Payment)",
        "cursor_of(req, Payment)",
        'await req.env.KV.get_json("a", Payment)',
        'await req.env.DB.prepare("SELECT 1 AS a").first(Payment)',
        'await req.env.DB.prepare("SELECT 1 AS a").one(Payment)',
        'await req.env.DB.prepare("SELECT 1 AS a").all(Payment)',
        'await req.env.DB.prepare("SELECT 1 AS a").bind().as_(Payment).all()',
    ],
)
def test_every_reader_is_looked_at(tmp_path: Path, read: str) -> None:
    assert told(tmp_path, f"    {read}\n").keys() == {0}


def test_a_model_of_pydantic_is_not_read(tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    (tmp_path / "models.py").write_text("from pydantic import BaseModel\nclass Item(BaseModel):\n    name: str\n")
    found = told(tmp_path, "    from models import Item\n    await req.json(Item)\n")
    assert found == {1: unreadable("Item")}


def test_a_type_that_has_itself_in_it_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from typing import TypeAlias, Union\nimport attrs, pathlib\n"
        'Json: TypeAlias = Union[dict[str, "Json"], list["Json"], str, None]\n'
        'Wrong: TypeAlias = Union[dict[str, "Wrong"], pathlib.Path]\n'
        "@attrs.frozen\nclass Event:\n    json: Json\n@attrs.frozen\nclass Bad:\n    wrong: Wrong\n"
    )
    body = "    from own import Bad, Event\n    await req.json(Event)\n    await req.json(Bad)\n"
    assert told(tmp_path, body) == {2: unreadable("Path")}


@pytest.mark.parametrize("read", ["json.loads(Payment)", "await thing().json(Payment)", "parse(Payment)", "req.json()"])
def test_what_is_no_reader_is_not(tmp_path: Path, read: str) -> None:
    assert not told(tmp_path, f"    {read}\n").keys() & {0} or read == "req.json()"
