"""`env(Env)`: a whole Env of fakes from its annotations."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import attrs
import pytest

from core import (
    Ai,
    Bindings,
    D1Database,
    DurableObject,
    DurableObjectNamespace,
    KVNamespace,
    Queue,
    R2Bucket,
    Request,
    Response,
    Secret,
    create_app,
)
from core.bindings.fetcher import Fetcher
from core.bindings.queue import MessageBatch
from core.errors import EnvError
from core.middleware.bearer_auth import bearer_auth
from core.testing import (
    Client,
    FakeClock,
    FakeD1Database,
    FakeDurableObjectNamespace,
    FakeKVNamespace,
    FakeQueue,
    FakeR2Bucket,
    env,
)


@attrs.frozen
class Job:
    name: str


class Room(DurableObject[Any]):
    """A Durable Object that does nothing."""


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    CACHE: KVNamespace
    DB: D1Database
    FILES: R2Bucket
    JOBS: Queue[Job]
    MODEL: Ai
    ROOMS: DurableObjectNamespace[Room]
    ORIGINS: str
    LIMIT: int
    DEBUG: bool
    JWT_SECRET: Secret
    OPTIONAL: str | None = None


async def test_every_binding_is_a_fake_of_its_own() -> None:
    made = env(Env)
    await made.SESSIONS.put("a", "1")
    assert await made.CACHE.get("a") is None
    assert isinstance(made.SESSIONS, FakeKVNamespace)
    assert isinstance(made.DB, FakeD1Database)
    assert isinstance(made.FILES, FakeR2Bucket)


def test_variables_and_secrets_are_plain() -> None:
    made = env(Env)
    assert (made.ORIGINS, made.LIMIT, made.DEBUG, made.OPTIONAL) == ("", 0, False, None)
    assert len(made.JWT_SECRET.reveal()) >= 32


async def test_a_secret_is_one_that_a_client_can_bring_as_a_token() -> None:
    app = create_app(Env)

    @app.get("/", bearer_auth(Env, token=lambda req: req.env.JWT_SECRET))
    async def show(req: Request[Env], res: Response) -> None:
        res.text("seen")

    made = env(Env)
    answer = await Client(app, made).get("/", headers={"Authorization": f"Bearer {made.JWT_SECRET.reveal()}"})
    assert (answer.status, await answer.text()) == (200, "seen")


def test_overrides_are_taken_as_they_are() -> None:
    kv = FakeKVNamespace()
    made = env(Env, SESSIONS=kv, ORIGINS="https://a.test", OPTIONAL="x")
    assert made.SESSIONS is kv
    assert (made.ORIGINS, made.OPTIONAL) == ("https://a.test", "x")


async def test_all_fakes_follow_one_clock() -> None:
    clock = FakeClock()
    made = env(Env, clock=clock)
    await made.SESSIONS.put("a", "1", expiration_ttl=60)
    clock.advance(61)
    assert await made.SESSIONS.get("a") is None


def test_an_override_that_is_no_attribute_is_told_with_those_that_are() -> None:
    with pytest.raises(EnvError, match=r"env\(Env, SESSION=…\): it has no such attribute. It has SESSIONS, CACHE"):
        env(Env, SESSION=FakeKVNamespace())


def test_what_cannot_be_made_up_is_told_with_the_line_to_write() -> None:
    @attrs.frozen
    class WithService(Bindings):
        OTHER: Fetcher

    with pytest.raises(
        EnvError, match=r"WithService.OTHER: Fetcher has no fake. Pass one of your own: env\(Env, OTHER=…\)"
    ):
        env(WithService)


async def test_a_configuration_gives_its_variables_and_its_migrations(tmp_path: Path) -> None:
    @attrs.frozen
    class Small(Bindings):
        DB: D1Database
        ORIGINS: str

    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_users.sql").write_text("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);")
    config = tmp_path / "wrangler.toml"
    config.write_text(
        'name = "small"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n'
        '[vars]\nORIGINS = "https://a.test"\n'
        '[[d1_databases]]\nbinding = "DB"\ndatabase_name = "db"\ndatabase_id = "x"\n'
    )
    made = env(Small, config=config)
    assert made.ORIGINS == "https://a.test"
    await made.DB.prepare("INSERT INTO users (name) VALUES (?)").bind("Ada").run()
    assert await made.DB.prepare("SELECT name FROM users").first("name") == "Ada"


async def test_a_configuration_gives_queues_their_names_and_delays(tmp_path: Path) -> None:
    @attrs.frozen
    class Queues(Bindings):
        JOBS: Queue[Job]
        MAIL: Queue[Job]
        OTHER: Queue[Job]

    config = tmp_path / "wrangler.toml"
    config.write_text(
        'name = "small"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n'
        '[[queues.producers]]\nbinding = "JOBS"\nqueue = "jobs"\ndelivery_delay = 5\n'
        '[[queues.producers]]\nbinding = "MAIL"\nqueue = "outgoing-mail"\n'
    )
    clock = FakeClock()
    made = env(Queues, config=config, clock=clock)
    queues = [cast("FakeQueue[Job]", one) for one in (made.JOBS, made.MAIL, made.OTHER)]
    for queue in queues:
        await queue.send(Job("a"))

    async def handled(batch: MessageBatch[Any]) -> None:
        pass

    assert [[batch.queue for batch in await queue.deliver(handled)] for queue in queues] == [
        [],
        ["outgoing-mail"],
        ["queue"],
    ]
    clock.advance(5)
    assert [batch.queue for batch in await queues[0].deliver(handled)] == ["jobs"]


def test_a_class_that_only_type_checkers_import_is_found_by_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrangler.toml").write_text(
        'name = "shop"\nmain = "app.py"\n[[durable_objects.bindings]]\nname = "ROOMS"\nclass_name = "Room"\n'
    )
    module = ModuleType("late")
    monkeypatch.setitem(sys.modules, "late", module)
    code = "from __future__ import annotations\nimport attrs\nfrom core import Bindings, DurableObjectNamespace\n"
    exec(f"{code}@attrs.frozen\nclass Env(Bindings):\n    ROOMS: DurableObjectNamespace[Room]\n", vars(module))

    made: Any = env(vars(module)["Env"], config=tmp_path / "wrangler.toml")

    assert isinstance(made.ROOMS, FakeDurableObjectNamespace)
    with pytest.raises(EnvError, match="imported outside `if TYPE_CHECKING:`"):
        env(vars(module)["Env"])
