"""The plugin and `core check` say the same, word for word, at the same place: they are two front ends of one engine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.mypy_plugin.conftest import MYPY_INI, Project
from tests.mypy_plugin.test_correct_programs import ENV as CORPUS_ENV
from tests.mypy_plugin.test_correct_programs import HEAD as CORPUS_HEAD
from tests.mypy_plugin.test_correct_programs import MIGRATIONS as CORPUS_MIGRATIONS
from tests.mypy_plugin.test_correct_programs import PROGRAMS
from tests.mypy_plugin.test_correct_programs import WRANGLER as CORPUS_WRANGLER

from core.analysis.program import check_program
from core.config.load import load_all

NAMES = ["SESSIONS", "COUNTERS", "DB", "LOG", "FILES", "JOBS", "MODEL", "ORIGIN", "MOST", "FLAGS", "KEY", "TOKEN"]

KINDS = {
    "KVNamespace": '[[{p}kv_namespaces]]\nbinding = "{n}"\nid = "x"\n',
    "D1Database": '[[{p}d1_databases]]\nbinding = "{n}"\ndatabase_name = "x"\ndatabase_id = "x"\n',
    "R2Bucket": '[[{p}r2_buckets]]\nbinding = "{n}"\nbucket_name = "x"\n',
    "Queue[str]": '[[{p}queues.producers]]\nbinding = "{n}"\nqueue = "x"\n',
}
VALUES = {"str": '"x"', "int": "5", "float": "0.5", "bool": "true", "list[str]": '["a"]', "dict[str, int]": "{ a = 1 }"}
FORMS = [
    "{n}: {t}",
    "{n}: {t}",
    "{n}: '{t}'",
    "{n}: {t} | None",
    "{n}: Optional[{t}]",
    "{n}: Annotated[{t}, 'x']",
    "{n}: {t} = attrs.field()",
    "_{n}: {t}",
    "{l}: {t} = attrs.field(alias='{n}')",
    "{n}: {t} | None = None",
    "{n}: Any",
]


@attrs.frozen
class Case:
    """A configuration and an Env beside it, which may or may not agree."""

    toml: str
    env: str


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    types = {name: draw(st.sampled_from([*KINDS, *VALUES, "Secret"])) for name in names}

    def environment(prefix: str, given: dict[str, str]) -> str:
        name = f"env.{prefix}." if prefix else ""
        variables = {n: VALUES[t] for n, t in given.items() if t in VALUES}
        secrets = [n for n, t in given.items() if t == "Secret"]
        text = "".join(KINDS[t].format(p=name, n=n) for n, t in given.items() if t in KINDS)
        if variables:
            text += f"[{name}vars]\n" + "".join(f"{n} = {v}\n" for n, v in variables.items())
        if secrets:
            text += f"[{name}secrets]\nrequired = {secrets!r}\n".replace("'", '"')
        return text

    toml = 'name = "x"\nmain = "env.py"\ncompatibility_date = "2026-04-01"\n' + environment("", types)
    if draw(st.booleans()):
        kept = draw(st.lists(st.sampled_from(names), unique=True))
        toml += environment("staging", {name: types[name] for name in kept})

    attributes = dict(types)
    for change in draw(st.lists(st.sampled_from(["drop", "add", "retype", "rename"]), max_size=3)):
        if change == "add":
            attributes[draw(st.sampled_from(NAMES))] = draw(st.sampled_from([*KINDS, *VALUES, "Secret"]))
        elif attributes:
            name = draw(st.sampled_from(sorted(attributes)))
            if change == "retype":
                attributes[name] = draw(st.sampled_from([*KINDS, *VALUES, "Secret"]))
            else:
                kind = attributes.pop(name)
                if change == "rename":
                    attributes[name[:-1] + "_"] = kind
    lines = [
        draw(st.sampled_from(FORMS)).format(n=name, l=f"a_{name.lower()}", t=kind) for name, kind in attributes.items()
    ]
    decorator = draw(st.sampled_from(["@attrs.frozen(kw_only=True)", "@attrs.define(frozen=True, kw_only=True)"]))
    env = (
        "from typing import Annotated, Any, Optional\nimport attrs\n"
        "from core import Bindings, D1Database, KVNamespace, Queue, R2Bucket, Secret\n"
        f"{decorator}\nclass Env(Bindings):\n" + "".join(f"    {line}\n" for line in lines or ["pass"])
    )
    return Case(toml, env)


def from_check(root: Path) -> list[str]:
    """The findings of `core check` about a project, with paths relative to it."""
    findings = check_program(load_all(root / "wrangler.toml"))
    return sorted(finding.text.replace(f"{root}/", "") for finding in findings)


@settings(max_examples=12, deadline=None, suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)))
@given(batch=st.lists(cases(), min_size=12, max_size=12))
def test_both_front_ends_agree_about_every_env_and_configuration(
    tmp_path_factory: pytest.TempPathFactory, mypy_cache: Path, batch: list[Case]
) -> None:
    root = tmp_path_factory.mktemp("agreement")
    project = Project(root, mypy_cache)
    project.write("mypy.ini", MYPY_INI + "disallow_any_explicit = False\n")
    for number, case in enumerate(batch):
        project.root.joinpath(f"case{number}").mkdir()
        project.root.joinpath(f"case{number}/wrangler.toml").write_text(case.toml.replace("env.py", f"env{number}.py"))
        project.root.joinpath(f"case{number}/env{number}.py").write_text(case.env)
    told = project.mypy()
    assert [line for line in told if "[core-" not in line] == []
    for number in range(len(batch)):
        plugin = sorted(line.removeprefix(f"case{number}/") for line in told if line.startswith(f"case{number}/"))
        assert plugin == from_check(root / f"case{number}")


WRONG = """\
import attrs
from typing import Any, Final, Literal, TypedDict
from core import Bindings, D1Database, KVNamespace, Next, Queue, MessageBatch, ExecutionContext
from core import Request, Response, Router, create_app
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id

@attrs.frozen
class Job:
    id: int

@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    ORIGIN: int
    JOBS: Queue[str]

@attrs.frozen
class UserRow:
    id: str
    email: str
    nick: str

class Typed(TypedDict):
    name: int

SQL: Final = "SELECT id, name, email FROM users WHERE id = ?"
app = create_app(Env)
app.use(logger())
app.use(request_id(), rate_limit(kv_binding="SESION", limit=1, window=60))
limit = rate_limit(kv_binding="DB", limit=1, window=60)

@app.get("/users/:id", limit)
async def show(req: Request[Env], res: Response) -> None:
    statement = req.env.DB.prepare(SQL)
    await statement.bind(req.params["idd"]).first(UserRow)
    await statement.bind(1, 2).all(Typed)
    await statement.first("nam")
    req.env.DB.prepare("SELECT nmae FROM users")
    req.env.DB.prepare(
        '''
        SELECT id
        FORM users
        '''
    )

@app.post("/orgs/:id")
async def org(req: Request[Env, object, Literal["org"]], res: Response) -> None: ...

app.get("/x", show, limit)
app.get("no-slash", limit)
users: Router[Env] = Router()

@users.get("/:user")
async def user(req: Request[Env], res: Response) -> None:
    req.params["id"]

app.use("/users", users)

@app.queue("jobs")
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None: ...

@app.queue("job")
async def near(batch: MessageBatch[Any], env: Env, ctx: ExecutionContext) -> None: ...
"""


def test_both_front_ends_agree_about_a_program_with_every_kind_of_mistake(project: Project) -> None:
    project.usual()
    project.root.joinpath("env.py").unlink()
    project.write(
        "wrangler.toml",
        project.root.joinpath("wrangler.toml").read_text()
        + '\n[[queues.producers]]\nbinding = "JOBS"\nqueue = "jobs"\n[[queues.consumers]]\nqueue = "jobs"\n',
    )
    project.root.joinpath("app.py").write_text(WRONG)
    told = sorted(project.mypy())
    assert told == from_check(project.root)
    assert len(told) == 21
    codes = {line.rpartition("[")[2].rstrip("]") for line in told}
    assert codes == {"core-binding", "core-env", "core-order", "core-params", "core-queue", "core-sql"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_core_check_is_silent_about_correct_programs_too(tmp_path: Path, name: str) -> None:
    wrangler = CORPUS_WRANGLER.replace('"env.py"', f'"case_{name}.py"')
    if ".queue(" not in PROGRAMS[name]:
        wrangler = wrangler.replace('[[queues.consumers]]\nqueue = "jobs"\n', "")
    tmp_path.joinpath("wrangler.toml").write_text(wrangler)
    for file, text in CORPUS_MIGRATIONS.items():
        tmp_path.joinpath(file).parent.mkdir(exist_ok=True)
        tmp_path.joinpath(file).write_text(text)
    tmp_path.joinpath("env.py").write_text(CORPUS_ENV)
    tmp_path.joinpath(f"case_{name}.py").write_text(CORPUS_HEAD + PROGRAMS[name])
    assert from_check(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "found"),
    [
        (
            "wrangler.toml",
            'binding = "COUNTERS"',
            'binding = "COUNTER"',
            (
                "src/users_api/env.py:10: error: Env.COUNTERS: no binding of that name in wrangler.toml. Did you mean "
                "COUNTER (wrangler.toml:8 [[kv_namespaces]])?  [core-env]"
            ),
        ),
        (
            "src/users_api/routes/users.py",
            'signed_in.put("/:id")',
            'signed_in.put("/:user_id")',
            (
                'src/users_api/routes/users.py:81: error: req.params["id"]: the path /:user_id has no parameter id. '
                "It has user_id  [core-params]"
            ),
        ),
        (
            "migrations/0002_events.sql",
            "kind TEXT",
            "sort TEXT",
            (
                "src/users_api/background.py:17: error: DB: table events has no column named kind. events has id, "
                "user_id, sort, request_id  [core-sql]"
            ),
        ),
    ],
)
def test_one_name_changed_in_the_example_is_one_finding_in_both_front_ends(
    tmp_path: Path, mypy_cache: Path, file: str, old: str, new: str, found: str
) -> None:
    root = tmp_path / "users"
    example = Path(__file__).resolve().parents[2] / "examples" / "users"
    shutil.copytree(example, root, ignore=shutil.ignore_patterns(".core", "tests", "__pycache__", ".mypy_cache"))
    project = Project(root, mypy_cache)
    project.write("mypy.ini", MYPY_INI + f"mypy_path = {root}/src\n")
    assert plugin_only(project.mypy()) == []
    assert from_check(root) == []
    project.edit(file, old, new)
    assert plugin_only(project.mypy()) == [found]
    assert from_check(root) == [found]


def plugin_only(told: list[str]) -> list[str]:
    """The plugin's findings: an older mypy has not understood `TypeForm`, and asks for annotations of its own."""
    return [line for line in told if "[core-" in line]
