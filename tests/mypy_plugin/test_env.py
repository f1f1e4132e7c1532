"""`core-env`: an Env class and its configuration file, in both directions."""

from __future__ import annotations

from tests.mypy_plugin.conftest import Project


def test_an_env_that_mirrors_its_configuration_is_passed_in_silence(project: Project) -> None:
    project.usual().check()


def test_every_drift_is_told_on_the_attribute_s_own_line(project: Project) -> None:
    project.usual()
    project.write(
        "env.py",
        """
        import attrs
        from core import Bindings, D1Database, KVNamespace, Queue, Secret

        @attrs.frozen
        class Env(Bindings):
            #^ core-env: Env has no attribute for the variable ORIGIN (wrangler.toml:15 [vars]). Write ORIGIN: str
            SESSION: KVNamespace
            #^ core-env: Env.SESSION: no binding of that name in wrangler.toml. Did you mean SESSIONS (wrangler.toml:6 [[kv_namespaces]])?
            DB: KVNamespace
            #^ core-env: Env.DB is a KVNamespace, but wrangler.toml:10 [[d1_databases]] declares a D1 database. Write DB: D1Database
            JOBS: Queue[str]
            #^ core-env: Env.JOBS: no binding of that name in wrangler.toml. Write [[queues.producers]] binding = "JOBS"
            KEY: Secret
            #^ core-env: Env.KEY: no binding of that name in wrangler.toml. Write [secrets] required = ["KEY"], and its value in .dev.vars
        """,
    )
    project.check()


def test_a_mistake_of_a_frozen_base_is_told_once_and_in_its_own_file(project: Project) -> None:
    project.usual()
    project.write(
        "base.py",
        "\n" * 40
        + """
import attrs
from core import Bindings, D1Database, KVNamespace

@attrs.frozen
class Base(Bindings):
    SESSION: KVNamespace
    #^ core-env: Base.SESSION: no binding of that name in wrangler.toml. Write [[kv_namespaces]] binding = "SESSION"
    DB: D1Database

@attrs.frozen
class Plain:
    LIMIT: int
""",
    )
    project.write(
        "env.py",
        """
        import attrs
        from base import Base, Plain

        @attrs.frozen
        class Env(Base, Plain):
            #^ core-env: Env has no attribute for the KV namespace SESSIONS (wrangler.toml:6 [[kv_namespaces]]). Write SESSIONS: KVNamespace
            #^ core-env: Env.LIMIT: no binding of that name in wrangler.toml. Write [vars] LIMIT = 1
            ORIGIN: str
        """,
    )
    project.check()
    project.check()  # from the cache
    project.mypy("--pretty")


def test_variables_are_checked_by_their_values(project: Project) -> None:
    project.usual()
    project.edit(
        "wrangler.toml", 'ORIGIN = "https://example.com"', 'ORIGIN = "x"\nMOST = 5\nFLAGS = { a = true }\nHOSTS = ["a"]'
    )
    project.write(
        "env.py",
        """
        from typing import Any, Literal
        import attrs
        from core import Bindings, D1Database, KVNamespace

        @attrs.frozen
        class Flags:
            a: bool

        @attrs.frozen
        class Env(Bindings):
            SESSIONS: KVNamespace
            DB: D1Database
            ORIGIN: Literal["x", "y"]
            MOST: str
            #^ core-env: Env.MOST is a str, but wrangler.toml:16 [vars] MOST is a whole number. Write MOST: int
            FLAGS: Flags
            HOSTS: list[str]

        @attrs.frozen
        class Other(Bindings):
            SESSIONS: KVNamespace
            DB: D1Database
            ORIGIN: Literal["a", "b"]
            #^ core-env: Other.ORIGIN is a Literal["a", "b"], but wrangler.toml:15 [vars] ORIGIN is "x". Write ORIGIN: str
            MOST: float
            FLAGS: dict[str, Any]
            HOSTS: Any

        @attrs.frozen
        class Third(Bindings):
            SESSIONS: KVNamespace
            DB: D1Database
            ORIGIN: Literal["xx", "other"]
            #^ core-env: Third.ORIGIN is a Literal["xx", "other"], but wrangler.toml:15 [vars] ORIGIN is "x". Did you mean xx?
            MOST: int
            FLAGS: Any
            HOSTS: Any
        """,
    )
    project.check()


def test_what_a_variable_has_inside_is_compared_too(project: Project) -> None:
    project.usual()
    project.write(
        "wrangler.toml",
        project.root.joinpath("wrangler.toml").read_text().replace('ORIGIN = "https://example.com"', "")
        + """
        HOSTS = ["a", 2]
        PORTS = [80, 443.0]
        LIMITS = { window = "60", most = 10 }
        RULES = [{ path = "/", levels = { read = 1 } }, { path = "/x", levels = { read = "all" } }]
        PLAN = { name = "gold", since = "2026-01-01", tags = ["x"] }
        NAMES = { a = "x" }
        MIXED = ["a", 1]
        """.replace("        ", ""),
    )
    project.write(
        "env.py",
        """
        import datetime
        from typing import Literal, NotRequired, TypedDict

        import attrs

        from core import Bindings, D1Database, KVNamespace

        @attrs.frozen
        class Limits:
            window: int
            most: int
            burst: int = 5

        class Rule(TypedDict):
            path: str
            levels: dict[str, int]
            note: NotRequired[str]

        @attrs.frozen
        class Plan:
            name: Literal["gold", "silver"]
            since: datetime.date
            tags: tuple[str, ...]
            owner: str | None = None
            parent: "Plan | None" = None

        @attrs.frozen
        class Env(Bindings):
            SESSIONS: KVNamespace
            DB: D1Database
            HOSTS: list[str]
            #^ core-env: Env.HOSTS is a list[str], but wrangler.toml:17 [vars] HOSTS[1] is a whole number, not a str. Correct one of the two
            PORTS: list[int]
            LIMITS: Limits
            #^ core-env: Env.LIMITS is a Limits, but wrangler.toml:19 [vars] LIMITS.window is a string, not an int. Correct one of the two
            RULES: list[Rule]
            #^ core-env: Env.RULES is a list[Rule], but wrangler.toml:20 [vars] RULES[1].levels.read is a string, not an int. Correct one of the two
            PLAN: Plan
            NAMES: dict[str, str]
            MIXED: list[str | int]

        @attrs.frozen
        class Member:
            name: Literal["bronze", "silver"]
            since: str
            tags: list[int] | None

        @attrs.frozen
        class Lacking:
            path: str
            order: int

        @attrs.frozen
        class Other(Bindings):
            SESSIONS: KVNamespace
            DB: D1Database
            HOSTS: list[str | float]
            PORTS: list[Literal[80]]
            #^ core-env: Other.PORTS is a list[Literal[80]], but wrangler.toml:18 [vars] PORTS[1] is a number, not a Literal[80]. Correct one of the two
            LIMITS: dict[str, int | None]
            #^ core-env: Other.LIMITS is a dict[str, int | None], but wrangler.toml:19 [vars] LIMITS.window is a string, not an int | None. Correct one of the two
            RULES: list[Lacking]
            #^ core-env: Other.RULES is a list[Lacking], but wrangler.toml:20 [vars] RULES[0] has no order, which Lacking demands. Correct one of the two
            PLAN: Member
            #^ core-env: Other.PLAN is a Member, but wrangler.toml:21 [vars] PLAN.name is "gold", not a Literal["bronze", "silver"]. Correct one of the two
            NAMES: dict[str, object]
            MIXED: list[object]
        """,
    )
    project.check()


def test_a_named_environment_that_lacks_a_binding_is_named(project: Project) -> None:
    project.usual()
    project.write(
        "wrangler.toml",
        project.root.joinpath("wrangler.toml").read_text()
        + '\n[env.staging]\nvars = { ORIGIN = "s" }\n[[env.staging.kv_namespaces]]\nbinding = "SESSIONS"\nid = "s"\n',
    )
    assert project.mypy() == [
        (
            "env.py:9: error: Env.DB: no binding of that name in [env.staging] of wrangler.toml. Bindings and variables are "
            'not inherited: write [[env.staging.d1_databases]] binding = "DB"  [core-env]'
        )
    ]
    project.write("mypy.ini", project.root.joinpath("mypy.ini").read_text() + "[core-mypy]\nenvironments = top-level\n")
    assert project.mypy() == []


def test_inheritance_aliases_strings_and_annotations_are_understood(project: Project) -> None:
    project.usual()
    project.write(
        "kinds.py",
        """
        from typing import Annotated, NewType, Optional, TypeAlias
        from core import D1Database, KVNamespace

        Store: TypeAlias = Annotated[KVNamespace, "sessions"]
        Maybe: TypeAlias = Optional[D1Database]
        Origin = NewType("Origin", str)
        """,
    )
    project.write(
        "env.py",
        """
        from __future__ import annotations
        import attrs
        from attrs import define, field
        from core import Bindings as Base
        from kinds import Maybe, Origin, Store

        @attrs.frozen
        class HasStore(Base):
            SESSIONS: Store

        @define(frozen=True)
        class Env(HasStore):
            _DB: "Maybe"
            origin: Origin = field(alias="ORIGIN")

        @attrs.frozen
        class Wrong(HasStore):
            database: "Later" = field(alias="DB")
            #^ core-env: Wrong.database is a KVNamespace, but wrangler.toml:10 [[d1_databases]] declares a D1 database. Write DB: D1Database
            ORIGIN: str

        Later = Store
        """,
    )
    project.check()


def test_an_env_may_be_derived_from_in_another_module(project: Project) -> None:
    project.usual()
    project.write(
        "base.py",
        """
        import attrs
        from core import Bindings, KVNamespace

        @attrs.frozen
        class HasSessions(Bindings):
            SESSIONS: KVNamespace
        """,
    )
    project.write(
        "env.py",
        """
        import attrs
        from core import D1Database
        from base import HasSessions

        @attrs.frozen
        class Env(HasSessions):
            DB: D1Database
            ORIGIN: int
            #^ core-env: Env.ORIGIN is an int, but wrangler.toml:15 [vars] ORIGIN is a string. Write ORIGIN: str
        """,
    )
    project.check()
    project.edit("env.py", "class Env(HasSessions)", "class Env")
    told = project.mypy()
    assert [line for line in told if line.startswith("base.py")] == [
        (
            "base.py:5: error: HasSessions has no attribute for the D1 database DB (wrangler.toml:10 [[d1_databases]]). "
            "Write DB: D1Database  [core-env]"
        ),
        (
            "base.py:5: error: HasSessions has no attribute for the variable ORIGIN (wrangler.toml:15 [vars]). "
            "Write ORIGIN: str  [core-env]"
        ),
    ]


def test_each_env_of_a_project_belongs_to_the_nearest_configuration(project: Project) -> None:
    for name in ("api", "jobs"):
        project.write(
            f"{name}/wrangler.toml",
            f'name = "{name}"\nmain = "m.py"\ncompatibility_date = "2026-04-01"\n[vars]\n{name.upper()} = "x"\n',
        )
        project.write(
            f"{name}/{name}_env.py",
            f"""
            import attrs
            from core import Bindings

            @attrs.frozen
            class Env(Bindings):
                {name.upper()}: str
            """,
        )
    project.edit("jobs/jobs_env.py", "JOBS: str", "JOB: str")
    assert project.mypy() == [
        (
            "jobs/jobs_env.py:6: error: Env.JOB: no binding of that name in wrangler.toml. "
            "Did you mean JOBS (wrangler.toml:5 [vars])?  [core-env]"
        )
    ]


def test_an_env_without_a_decorator_is_told(project: Project) -> None:
    project.usual()
    project.write(
        "env.py",
        """
        from core import Bindings, KVNamespace

        class Env(Bindings):
            #^ core-env: Env has attributes of its own but no decorator. Put @attrs.frozen above it
            SESSIONS: KVNamespace
        """,
    )
    project.check()


def test_a_broken_migration_is_told_at_its_database(project: Project) -> None:
    project.usual()
    project.write("migrations/0002_more.sql", "-- more\nCREATE TABLE tags (id INTEGER PRIMARY KEY,, name TEXT);\n")
    assert project.mypy() == [
        (
            'env.py:9: error: Env.DB: migrations/0002_more.sql:2: near ",": syntax error. Until it is corrected, tags '
            "is not known  [core-sql]"
        )
    ]


def test_dataclasses_are_envs_too(project: Project) -> None:
    project.usual()
    project.write(
        "env.py",
        """
        from dataclasses import dataclass
        from core import Bindings, D1Database, KVNamespace

        @dataclass(frozen=True)
        class Env(Bindings):
            SESSIONS: D1Database
            #^ core-env: Env.SESSIONS is a D1Database, but wrangler.toml:6 [[kv_namespaces]] declares a KV namespace. Write SESSIONS: KVNamespace
            DB: D1Database
            ORIGIN: str
        """,
    )
    project.check()
