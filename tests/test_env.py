"""Env is built once, from names and annotations, and one error tells all that is wrong."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, NotRequired, Optional, Protocol, TypedDict

import attrs
import pytest

from core.bindings.d1 import D1Database
from core.bindings.kv import KVNamespace
from core.bindings.queue import Queue
from core.bindings.secret import Secret
from core.env import AnyEnv, Bindings, EnvField, fields_of, inject
from core.errors import EnvError

if TYPE_CHECKING:
    from core.bindings.r2 import R2Bucket


class KV:
    async def get(self, key: str) -> None: ...
    async def get_json(self, key: str) -> None: ...
    async def get_with_metadata(self, key: str) -> None: ...
    async def put(self, key: str, value: str) -> None: ...
    async def put_json(self, key: str, value: object) -> None: ...
    async def delete(self, key: str) -> None: ...
    async def list(self) -> None: ...


class DB:
    def prepare(self, sql: str) -> None: ...
    async def batch(self) -> None: ...
    async def exec(self, sql: str) -> None: ...
    def with_session(self) -> None: ...


@attrs.frozen
class Job:
    id: int


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    ALLOWED_ORIGINS: str
    JWT_SECRET: Secret


def problems(env_class: type[Any], lookup: Any, **options: Any) -> list[str]:
    with pytest.raises(EnvError) as caught:
        inject(env_class, lookup, **options)
    return caught.value.problems


def test_each_attribute_is_looked_up_by_its_name() -> None:
    kv: Any = KV()
    db: Any = DB()
    env = inject(Env, {"SESSIONS": kv, "DB": db, "ALLOWED_ORIGINS": "a,b", "OTHER": 1}, secrets={"JWT_SECRET": "s"})
    assert env.SESSIONS is kv
    assert env.DB is db
    assert env.ALLOWED_ORIGINS == "a,b"
    assert Secret("s") == env.JWT_SECRET


def test_a_lookup_may_be_a_function_that_returns_none_or_raises_key_error() -> None:
    values = {"SESSIONS": KV(), "DB": DB(), "ALLOWED_ORIGINS": "", "JWT_SECRET": "s"}
    assert inject(Env, values.get).ALLOWED_ORIGINS == ""
    assert inject(Env, lambda name: values[name]).JWT_SECRET.reveal() == "s"
    without: dict[str, object] = {**values, "DB": None}
    assert problems(Env, without.__getitem__) == [
        'Env.DB: no binding of that name. Write [[d1_databases]] binding = "DB"'
    ]


def test_everything_missing_is_told_in_one_error_with_the_table_to_write() -> None:
    assert problems(Env, {}) == [
        'Env.SESSIONS: no binding of that name. Write [[kv_namespaces]] binding = "SESSIONS"',
        'Env.DB: no binding of that name. Write [[d1_databases]] binding = "DB"',
        (
            'Env.ALLOWED_ORIGINS: no binding of that name. Write [vars] ALLOWED_ORIGINS = "…", or ALLOWED_ORIGINS=… in '
            ".dev.vars if it is a secret"
        ),
        'Env.JWT_SECRET: no binding of that name. Write JWT_SECRET=… in .dev.vars, and [secrets] required = ["JWT_SECRET"]',
    ]


def test_a_near_name_is_proposed() -> None:
    @attrs.frozen
    class One(Bindings):
        SESSIONS: KVNamespace

    assert problems(One, {"SESSION": KV()}) == [
        'One.SESSIONS: no binding of that name. Did you mean SESSION? Write [[kv_namespaces]] binding = "SESSIONS"'
    ]


def test_the_only_binding_of_the_kind_that_no_field_has_is_proposed() -> None:
    @attrs.frozen
    class One(Bindings):
        CACHE: KVNamespace
        SESSIONS: KVNamespace

    missing = 'One.CACHE: no binding of that name.{} Write [[kv_namespaces]] binding = "CACHE"'
    others = {"SESSIONS": KV(), "GREETING": "hello", "LIMIT": 3}
    assert problems(One, {**others, "KV": KV()}) == [missing.format(" Did you mean KV?")]
    assert problems(One, {**others, "KV": KV(), "STORE": KV()}) == [missing.format("")]
    assert problems(One, others) == [missing.format("")]


def test_a_binding_of_the_wrong_kind_is_told_by_what_its_class_lacks() -> None:
    @attrs.frozen
    class One(Bindings):
        DB: D1Database
        JOBS: Queue[Job]

    assert problems(One, {"DB": KV(), "JOBS": "text"}) == [
        (
            "One.DB: expected a D1Database, found a KV, which has no batch, exec, prepare, with_session. "
            'Write [[d1_databases]] binding = "DB"'
        ),
        (
            "One.JOBS: expected a Queue, found a string, which has no metrics, send, send_batch. "
            'Write [[queues.producers]] binding = "JOBS"'
        ),
    ]


def test_the_value_of_a_variable_or_secret_never_stands_in_an_error() -> None:
    @attrs.frozen
    class One(Bindings):
        LIMIT: int
        KV: KVNamespace
        NAME: str

    told = problems(One, {"LIMIT": "hunter2", "KV": Secret("hunter2"), "NAME": ["hunter2"]})
    assert len(told) == 3
    assert "hunter2" not in "".join(told)


def test_a_str_takes_a_string_or_a_secret_and_a_secret_takes_a_string() -> None:
    @attrs.frozen
    class One(Bindings):
        A: str
        B: str
        C: Secret
        D: Secret

    one = inject(One, {"A": "a", "B": Secret("b"), "C": "c", "D": Secret("d")})
    assert (one.A, one.B, one.C.reveal(), one.D.reveal()) == ("a", "b", "c", "d")
    assert problems(One, {"A": 1, "B": "", "C": 1, "D": {}}) == [
        'One.A: expected a str, found a number. Write [vars] A = "…", or A=… in .dev.vars if it is a secret',
        'One.C: expected a Secret, found a number. Write C=… in .dev.vars, and [secrets] required = ["C"]',
        'One.D: expected a Secret, found a table. Write D=… in .dev.vars, and [secrets] required = ["D"]',
    ]


@attrs.frozen
class Limits:
    per_minute: int
    burst: int = 0


class LimitsDict(TypedDict):
    per_minute: int


@attrs.frozen
class Variables(Bindings):
    COUNT: int
    RATE: float
    ON: bool
    ORIGINS: list[str]
    LIMITS: Limits
    LIMITS_DICT: LimitsDict
    MODE: Literal["a", "b"]
    ANY: Any
    TABLE: dict[str, int]


VARIABLES: dict[str, Any] = {
    "COUNT": 3,
    "RATE": 1,
    "ON": True,
    "ORIGINS": ["a", "b"],
    "LIMITS": {"per_minute": 3},
    "LIMITS_DICT": {"per_minute": 3},
    "MODE": "a",
    "ANY": None,
    "TABLE": {"a": 1},
}


def test_variables_of_json_types_are_taken_as_they_are_annotated() -> None:
    env = inject(Variables, {**VARIABLES, "ANY": [1]})
    assert env.COUNT == 3
    assert env.RATE == 1.0
    assert type(env.RATE) is float
    assert env.ON is True
    assert env.ORIGINS == ["a", "b"]
    assert Limits(3) == env.LIMITS
    assert env.LIMITS_DICT == {"per_minute": 3}
    assert env.MODE == "a"
    assert env.ANY == [1]
    assert env.TABLE == {"a": 1}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("COUNT", "3", "expected an int, found a string. Write [vars] COUNT = 1"),
        ("COUNT", True, "expected an int, found a bool. Write [vars] COUNT = 1"),
        ("COUNT", 1.5, "expected an int, found a number. Write [vars] COUNT = 1"),
        ("ON", "true", "expected a bool, found a string. Write [vars] ON = true"),
        ("ON", 1, "expected a bool, found a number. Write [vars] ON = true"),
        ("RATE", "1", "expected a float, found a string. Write [vars] RATE = 0.5"),
        ("ORIGINS", "a,b", "expected a list[str], found a string. Write [vars] ORIGINS = […]"),
        (
            "ORIGINS",
            ["a", 1],
            "expected a list[str], found a list: [1] must be a string. Write [vars] ORIGINS = […]",
        ),
        (
            "LIMITS",
            {"per_minute": "3"},
            "expected a Limits, found a table: per_minute must be an integer. Write [vars] LIMITS = { … }",
        ),
        ("MODE", "c", "expected a Literal['a', 'b'], found a string. Write [vars] MODE = { … }"),
    ],
)
def test_variables_are_strict(name: str, value: object, told: str) -> None:
    assert problems(Variables, {**VARIABLES, "ANY": 1, name: value}) == [f"Variables.{name}: {told}"]


def test_an_optional_binding_may_be_absent_and_a_default_holds() -> None:
    @attrs.frozen
    class One(Bindings):
        A: KVNamespace | None
        B: Optional[KVNamespace]  # noqa: UP045  # both spellings are tried
        C: KVNamespace | None = None
        D: str = "d"
        E: list[str] = attrs.field(factory=lambda: ["e"])

    one = inject(One, {})
    assert (one.A, one.B, one.C, one.D, one.E) == (None, None, None, "d", ["e"])
    kv: Any = KV()
    assert inject(One, {"A": kv, "C": kv}).C is kv
    assert len(problems(One, {"A": 1})) == 1


Port = NewType("Port", int)


def test_annotated_new_types_and_inheritance_are_seen_through() -> None:
    @attrs.frozen
    class Base(Bindings):
        A: Annotated[KVNamespace, "sessions"]

    @attrs.frozen
    class Child(Base):
        B: Port
        C: Annotated[str | None, "c"] = None

    kv: Any = KV()
    child = inject(Child, {"A": kv, "B": 80})
    assert (kv, 80, None) == (child.A, child.B, child.C)
    assert problems(Child, {"B": "80"}) == [
        'Child.A: no binding of that name. Write [[kv_namespaces]] binding = "A"',
        "Child.B: expected an int, found a string. Write [vars] B = 1",
    ]


def test_private_names_and_aliases_are_looked_up_as_attrs_names_them() -> None:
    @attrs.frozen
    class One(Bindings):
        _hidden: str
        other: str = attrs.field(alias="OTHER_NAME")

    one = inject(One, {"hidden": "h", "OTHER_NAME": "o"})
    assert (one._hidden, one.other) == ("h", "o")
    assert problems(One, {"hidden": "h"}) == [
        'One.other: no binding of that name. Write [vars] OTHER_NAME = "…", or OTHER_NAME=… in .dev.vars if it is a secret'
    ]


def test_attributes_that_init_does_not_take_are_not_looked_up() -> None:
    @attrs.frozen
    class One(Bindings):
        A: str
        size: int = attrs.field(init=False, default=3)

    assert inject(One, {"A": "abc"}).size == 3


def _split(text: str) -> list[str]:
    return text.split(",")


def test_a_converter_takes_what_it_takes_and_what_it_raises_is_an_env_error() -> None:
    @attrs.frozen
    class One(Bindings):
        ORIGINS: list[str] = attrs.field(converter=_split)
        PORT: int = attrs.field(converter=int)

    assert inject(One, {"ORIGINS": "a,b", "PORT": "80"}) == One("a,b", "80")
    assert problems(One, {"ORIGINS": "a", "PORT": "x"}) == [
        "One cannot be built: invalid literal for int() with base 10: 'x'"
    ]


def test_type_arguments_that_exist_for_type_checkers_only_do_not_matter() -> None:
    class Local: ...

    @attrs.frozen
    class One(Bindings):
        JOBS: Queue[Local]
        MORE: Queue[Local] | None = None

    class Jobs:
        async def send(self) -> None: ...
        async def send_batch(self) -> None: ...
        async def metrics(self) -> None: ...

    assert isinstance(inject(One, {"JOBS": Jobs()}).JOBS, Jobs)


def test_a_binding_type_that_is_not_there_at_run_time_is_named() -> None:
    @attrs.frozen
    class One(Bindings):
        FILES: R2Bucket

    assert problems(One, {"FILES": object()}) == [
        f"One.FILES: R2Bucket is not defined in {__name__} when the program runs. Import it outside `if TYPE_CHECKING:`"
    ]


def test_an_annotation_that_is_no_python_is_named() -> None:
    @attrs.frozen
    class One(Bindings):
        A: str
        B: "1 +"  # type: ignore[valid-type]  # noqa: F722  # the promise is that it is told

    assert problems(One, {"A": 1})[0].startswith("One.B: its annotation")


def test_a_class_without_decorator_is_told_to_have_one() -> None:
    class One(Bindings):
        A: str

    class Two(Env):
        A: str

    assert problems(One, {"A": "a"}) == ["One is not an attrs class. Put @attrs.frozen above it"]
    assert problems(Two, {"A": "a"}) == ["Two has attributes of its own but no decorator. Put @attrs.frozen above it"]


def test_a_subclass_without_attributes_needs_no_decorator() -> None:
    class Child(Env):
        pass

    child = inject(Child, {"SESSIONS": KV(), "DB": DB(), "ALLOWED_ORIGINS": "", "JWT_SECRET": "s"})
    assert isinstance(child, Child)


@attrs.frozen
class Unmarked:
    A: str


@dataclasses.dataclass(frozen=True)
class Data(Bindings):
    A: str
    B: list[str] = dataclasses.field(default_factory=list[str])


class Dict(TypedDict):
    A: str
    B: NotRequired[int]


def test_attrs_classes_without_the_marker_dataclasses_and_typed_dicts_are_envs_too() -> None:
    assert inject(Unmarked, {"A": "a"}) == Unmarked("a")
    assert inject(Data, {"A": "a"}) == Data("a", [])
    assert inject(Dict, {"A": "a"}) == {"A": "a"}
    assert inject(Dict, {"A": "a", "B": 1}) == {"A": "a", "B": 1}
    assert problems(Data, {}) == [
        'Data.A: no binding of that name. Write [vars] A = "…", or A=… in .dev.vars if it is a secret'
    ]
    assert len(problems(Dict, {"B": "1"})) == 2


def test_the_env_of_an_application_without_one_has_every_binding_by_name_once() -> None:
    asked: list[str] = []

    def lookup(name: str) -> object:
        asked.append(name)
        return {"A": 1}.get(name)

    nothings: list[Any] = [None, Any]
    for nothing in nothings:
        env: Any = inject(nothing, lookup)
        assert isinstance(env, AnyEnv)
        assert env.A == env.A == 1
        with pytest.raises(
            AttributeError,
            match=r"^Env\.B: no binding of that name\. Declare it in the configuration file\.$",
        ):
            _ = env.B
    assert asked == ["A", "B", "A", "B"]
    assert inject(None, {}, secrets={"KEY": "k"}).KEY.reveal() == "k"


def test_secrets_win_over_the_lookup() -> None:
    assert inject(Unmarked, {"A": "a"}, secrets={"A": "b"}).A == "b"


def test_a_runtime_may_adapt_its_own_objects_by_the_kind_that_is_asked_for() -> None:
    kv: Any = KV()

    def adapt(value: Any, field: EnvField) -> object:
        return kv if field.kind is KVNamespace else value

    @attrs.frozen
    class One(Bindings):
        A: KVNamespace | None
        B: str

    assert inject(One, {"A": object(), "B": "b"}, adapt=adapt) == One(kv, "b")


def test_an_own_protocol_is_checked_by_its_methods() -> None:
    class Greeter(Protocol):
        async def greet(self, name: str) -> str: ...

    class Service:
        async def greet(self, name: str) -> str:
            return name

    class Proxy:
        def __getattr__(self, name: str) -> Callable[[], None]:
            if name == "greet":
                return lambda: None
            raise AttributeError(name)

    globals()["Greeter"] = Greeter

    @attrs.frozen
    class One(Bindings):
        AUTH: Greeter

    service, proxy = Service(), Proxy()
    assert inject(One, {"AUTH": service}).AUTH is service
    assert isinstance(inject(One, {"AUTH": proxy}).AUTH, Proxy)
    assert problems(One, {"AUTH": object()}) == [
        (
            "One.AUTH: expected a Greeter, found an object, which has no greet(). "
            'Declare a binding called "AUTH" in the configuration file'
        )
    ]


def test_fields_of_gives_the_plan_of_an_env() -> None:
    @attrs.frozen
    class One(Bindings):
        JOBS: Queue[Job] | None
        A: str = "a"

    assert [vars(field) for field in fields_of(One)] == [
        vars(EnvField(name="JOBS", attribute="JOBS", kind=Queue, annotation=Queue[Job], optional=True)),
        vars(EnvField(name="A", attribute="A", kind=str, annotation=str, optional=True, has_default=True)),
    ]
    with pytest.raises(EnvError):
        fields_of(int)


def test_annotations_need_no_future_import(tmp_path: Path) -> None:
    source = textwrap.dedent("""
        from typing import TYPE_CHECKING
        import attrs
        from core.env import Bindings, inject
        from core.bindings.secret import Secret

        @attrs.frozen
        class Env(Bindings):
            A: str
            B: "Secret"
            C: "Secret | None" = None

        print(inject(Env, {"A": "a", "B": "b"}))
    """)
    file = tmp_path / "env_without_future.py"
    file.write_text(source)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout == "Env(A='a', B=Secret(hidden), C=None)\n"


def test_a_worker_pays_for_no_development_module() -> None:
    code = (
        "import sys; import core.env; "
        "print(sorted({'cattrs','tomllib','sqlite3','socket','hmac','core.config','difflib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
