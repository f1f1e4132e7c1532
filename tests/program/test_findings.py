"""Env against the configuration, in both directions and every environment: the exact words of each finding."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bindings.kinds import KINDS
from core.config.load import load_all
from core.config.model import Configuration
from core.errors import ConfigurationError
from core.program.envs import EnvAttribute, EnvClass, check_env
from core.program.findings import Finding, configuration_findings, sort_findings
from core.program.module_rules import binding_problem
from core.program.registered import absent_parameter, handler_parameters, queue_problem, unknown_parameter
from core.program.table import Place


def configured(directory: Path, text: str, name: str = "wrangler.toml") -> list[Configuration]:
    path = directory / name
    path.write_text(text)
    return load_all(path)


def attribute(name: str, shown: str, *, line: int = 0, **options: Any) -> EnvAttribute:
    kind = options.pop("kind", shown.partition("[")[0])
    return EnvAttribute(
        name, options.pop("attribute", name), kind=kind, shown=shown, location=Place("env.py", line, 5), **options
    )


def shape(*attributes: EnvAttribute, partial: bool = False) -> EnvClass:
    numbered = [
        a if a.location.line else attrs.evolve(a, location=Place("env.py", 10 + n, 5)) for n, a in enumerate(attributes)
    ]
    return EnvClass("Env", Place("env.py", 9, 1), numbered, partial)


def told(directory: Path, text: str, env: EnvClass, **options: Any) -> list[str]:
    findings = check_env(env, configured(directory, text), **options)
    assert all(finding.code == "core-env" and finding.file == "env.py" for finding in findings)
    return [f"{finding.line}: {finding.message}" for finding in sort_findings(findings)]


KV = '[[kv_namespaces]]\nbinding = "SESSIONS"\n'


def test_an_env_that_mirrors_the_file_has_no_finding(tmp_path: Path) -> None:
    text = (
        KV
        + '[[d1_databases]]\nbinding = "DB"\n[[queues.producers]]\nbinding = "JOBS"\nqueue = "jobs"\n'
        + '[vars]\nORIGINS = "a"\nLIMIT = 1\nRATE = 1\nON = true\nLIST = []\nTABLE = {}\nMODE = "a"\n'
        + '[secrets]\nrequired = ["KEY", "TOKEN"]\n'
    )
    env = shape(
        attribute("SESSIONS", "KVNamespace"),
        attribute("DB", "D1Database"),
        attribute("JOBS", "Queue[Job]", arguments=("app.Job",)),
        attribute("ORIGINS", "str"),
        attribute("LIMIT", "int"),
        attribute("RATE", "float"),
        attribute("ON", "bool"),
        attribute("LIST", "list[str]"),
        attribute("TABLE", "Limits", kind="table"),
        attribute("MODE", 'Literal["a", "b"]', literals=("a", "b")),
        attribute("KEY", "Secret"),
        attribute("TOKEN", "str"),
    )
    assert told(tmp_path, text, env) == []


@pytest.mark.parametrize(
    ("shown", "write"),
    [
        ("KVNamespace", '[[kv_namespaces]] binding = "X"'),
        ("D1Database", '[[d1_databases]] binding = "X"'),
        ("R2Bucket", '[[r2_buckets]] binding = "X"'),
        ("Queue[Job]", '[[queues.producers]] binding = "X"'),
        ("Ai", '[ai] binding = "X"'),
        ("DurableObjectNamespace", '[[durable_objects.bindings]] name = "X"'),
        ("Fetcher", '[[services]] binding = "X"'),
        ("RateLimit", '[[ratelimits]] name = "X"'),
        ("SendEmail", '[[send_email]] name = "X"'),
        ("VersionMetadata", '[version_metadata] binding = "X"'),
        ("str", '[vars] X = "…", or [secrets] required = ["X"] if it is a secret'),
        ("int", "[vars] X = 1"),
        ("bool", "[vars] X = true"),
        ("list[str]", "[vars] X = […]"),
        ("Secret", '[secrets] required = ["X"], and its value in .dev.vars'),
    ],
)
def test_an_attribute_without_binding_names_the_table_to_write(shown: str, write: str, tmp_path: Path) -> None:
    assert told(tmp_path, "", shape(attribute("X", shown))) == [
        f"10: Env.X: no binding of that name in wrangler.toml. Write {write}"
    ]


def test_an_attribute_of_an_unknown_type_needs_a_binding_too(tmp_path: Path) -> None:
    assert told(tmp_path, "", shape(attribute("X", "Greeter", kind=""))) == [
        "10: Env.X: no binding of that name in wrangler.toml. Declare it there, or give the attribute a default"
    ]


def test_a_json_file_is_told_in_the_words_of_json(tmp_path: Path) -> None:
    env = shape(attribute("A", "KVNamespace"), attribute("B", "str"), attribute("C", "Ai"))
    findings = check_env(env, configured(tmp_path, '{"vars": {"D": 1}}', "wrangler.jsonc"))
    assert [f.message for f in findings] == [
        'Env.A: no binding of that name in wrangler.jsonc. Write "kv_namespaces": [{ "binding": "A" }]',
        (
            'Env.B: no binding of that name in wrangler.jsonc. Write "vars": { "B": "…" }, or "secrets": { "required": ["B"] } '
            "if it is a secret"
        ),
        'Env.C: no binding of that name in wrangler.jsonc. Write "ai": { "binding": "C" }',
        'Env has no attribute for the variable D (wrangler.jsonc:1 "vars"). Write D: int',
    ]


@pytest.mark.parametrize(
    ("text", "write"),
    [
        (KV, "the KV namespace SESSIONS (wrangler.toml:2 [[kv_namespaces]]). Write SESSIONS: KVNamespace"),
        ("[ai]\nbinding = 'A'", "the AI binding A (wrangler.toml:2 [ai]). Write A: Ai"),
        (
            "[[queues.producers]]\nbinding = 'A'\nqueue = 'a'",
            "the queue producer A (wrangler.toml:2 [[queues.producers]]). Write A: Queue[…]",
        ),
        (
            "[[durable_objects.bindings]]\nname = 'A'\nclass_name = 'Room'",
            (
                "the Durable Object binding A (wrangler.toml:2 [[durable_objects.bindings]]). "
                "Write A: DurableObjectNamespace[Room]"
            ),
        ),
        ("[assets]\nbinding = 'A'", "the assets binding A (wrangler.toml:2 [assets]). Write A: Assets"),
        ("[vars]\nA = 'a'", "the variable A (wrangler.toml:2 [vars]). Write A: str"),
        ("[vars]\nA = ['a']", "the variable A (wrangler.toml:2 [vars]). Write A: list[str]"),
        ("[vars]\nA = 1.5", "the variable A (wrangler.toml:2 [vars]). Write A: float"),
        ("[vars]\nA = {}", "the variable A (wrangler.toml:2 [vars]). Write A: dict[str, object]"),
        ("[secrets]\nrequired = ['A']", "the secret A (wrangler.toml:2 [secrets]). Write A: Secret"),
    ],
)
def test_a_binding_without_attribute_is_told_at_the_class_with_the_line_to_write(
    text: str, write: str, tmp_path: Path
) -> None:
    assert told(tmp_path, text, shape()) == [f"9: Env has no attribute for {write}"]


def test_kinds_without_a_type_and_secrets_of_this_machine_need_no_attribute(tmp_path: Path) -> None:
    (tmp_path / ".dev.vars").write_text("LOCAL=1")
    assert (
        told(
            tmp_path,
            "[[pipelines]]\nbinding = 'A'\npipeline = 'p'\n[[unsafe.bindings]]\nname = 'B'\ntype = 'b'",
            shape(),
        )
        == []
    )


@pytest.mark.parametrize(
    ("text", "shown", "told_"),
    [
        (
            KV,
            "D1Database",
            "is a D1Database, but wrangler.toml:2 [[kv_namespaces]] declares a KV namespace. Write SESSIONS: KVNamespace",
        ),
        (
            KV,
            "str",
            "is a str, but wrangler.toml:2 [[kv_namespaces]] declares a KV namespace. Write SESSIONS: KVNamespace",
        ),
        (
            "[[r2_buckets]]\nbinding = 'SESSIONS'",
            "KVNamespace",
            "is a KVNamespace, but wrangler.toml:2 [[r2_buckets]] declares an R2 bucket. Write SESSIONS: R2Bucket",
        ),
        (
            "[vars]\nSESSIONS = 'a'",
            "int",
            "is an int, but wrangler.toml:2 [vars] SESSIONS is a string. Write SESSIONS: str",
        ),
        (
            "[vars]\nSESSIONS = 1",
            "str",
            "is a str, but wrangler.toml:2 [vars] SESSIONS is a whole number. Write SESSIONS: int",
        ),
        (
            "[vars]\nSESSIONS = true",
            "int",
            "is an int, but wrangler.toml:2 [vars] SESSIONS is a bool. Write SESSIONS: bool",
        ),
        (
            "[vars]\nSESSIONS = 1.5",
            "int",
            "is an int, but wrangler.toml:2 [vars] SESSIONS is a number. Write SESSIONS: float",
        ),
        (
            "[vars]\nSESSIONS = 'a'",
            "KVNamespace",
            "is a KVNamespace, but wrangler.toml:2 [vars] SESSIONS is a string. Write SESSIONS: str",
        ),
        (
            "[vars]\nSESSIONS = []",
            "dict[str, int]",
            "is a dict[str, int], but wrangler.toml:2 [vars] SESSIONS is a list. Write SESSIONS: list[object]",
        ),
        (
            "[vars]\nSESSIONS = 'a'",
            "Secret",
            (
                "is a Secret, but wrangler.toml:2 [vars] is plain text that everyone with the file can read. Move its value to "
                '.dev.vars, and write [secrets] required = ["SESSIONS"]'
            ),
        ),
        (
            "[secrets]\nrequired = ['SESSIONS']",
            "KVNamespace",
            "is a KVNamespace, but wrangler.toml:2 [secrets] declares a secret. Write SESSIONS: Secret",
        ),
    ],
)
def test_the_wrong_kind_is_told_with_both_places(text: str, shown: str, told_: str, tmp_path: Path) -> None:
    assert told(tmp_path, text, shape(attribute("SESSIONS", shown))) == [f"10: Env.SESSIONS {told_}"]


def test_a_literal_must_have_the_value(tmp_path: Path) -> None:
    env = shape(attribute("MODE", 'Literal["a", "b"]', literals=("a", "b")))
    assert told(tmp_path, "[vars]\nMODE = 'c'", env) == [
        '10: Env.MODE is a Literal["a", "b"], but wrangler.toml:2 [vars] MODE is "c". Write MODE: str'
    ]
    assert told(tmp_path, "[vars]\nMODE = 'b'", env) == []


def test_what_a_face_does_not_understand_and_what_is_converted_is_not_judged(tmp_path: Path) -> None:
    judged: list[dict[str, Any]] = [
        {"kind": ""},
        {"kind": "Any"},
        {"kind": "object"},
        {"kind": "int", "converted": True},
    ]
    for options in judged:
        assert told(tmp_path, KV, shape(attribute("SESSIONS", "x", **options))) == []
        assert told(tmp_path, "[vars]\nSESSIONS = ''", shape(attribute("SESSIONS", "x", **options))) == []


def test_optional_inherited_and_partial_hold_findings_back(tmp_path: Path) -> None:
    assert told(tmp_path, "", shape(attribute("A", "KVNamespace", optional=True))) == []
    assert told(tmp_path, "", shape(attribute("A", "KVNamespace", inherited=True))) == []
    assert told(tmp_path, KV, shape(partial=True)) == []


# One mistake, one finding -------------------------------------------------------------------------------------------


def test_a_renamed_binding_is_one_finding_on_the_attribute_with_both_names(tmp_path: Path) -> None:
    near = [
        "10: Env.SESSIONS: no binding of that name in wrangler.toml. Did you mean SESION (wrangler.toml:2 [[kv_namespaces]])?"
    ]
    assert told(tmp_path, KV.replace("SESSIONS", "SESION"), shape(attribute("SESSIONS", "KVNamespace"))) == near
    far = [
        "10: Env.SESSIONS: no binding of that name in wrangler.toml. Did you mean STORE (wrangler.toml:2 [[kv_namespaces]])?"
    ]
    assert told(tmp_path, KV.replace("SESSIONS", "STORE"), shape(attribute("SESSIONS", "KVNamespace"))) == far


def test_a_near_name_of_another_kind_is_not_what_was_meant(tmp_path: Path) -> None:
    assert told(tmp_path, KV, shape(attribute("SESSION", "D1Database"))) == [
        "9: Env has no attribute for the KV namespace SESSIONS (wrangler.toml:2 [[kv_namespaces]]). Write SESSIONS: KVNamespace",
        '10: Env.SESSION: no binding of that name in wrangler.toml. Write [[d1_databases]] binding = "SESSION"',
    ]


def test_each_binding_is_proposed_once(tmp_path: Path) -> None:
    text = '[vars]\nKEY_A = ""\nKEY_B = ""\n'
    assert told(tmp_path, text, shape(attribute("KEY_C", "str"), attribute("KEY_D", "str"))) == [
        "10: Env.KEY_C: no binding of that name in wrangler.toml. Did you mean KEY_B (wrangler.toml:3 [vars])?",
        "11: Env.KEY_D: no binding of that name in wrangler.toml. Did you mean KEY_A (wrangler.toml:2 [vars])?",
    ]


# Environments -------------------------------------------------------------------------------------------------------


def test_what_a_named_environment_lacks_is_told_with_its_name(tmp_path: Path) -> None:
    assert told(tmp_path, KV + "[env.staging]\n", shape(attribute("SESSIONS", "KVNamespace"))) == [
        (
            "10: Env.SESSIONS: no binding of that name in [env.staging] of wrangler.toml. Bindings and variables are not "
            'inherited: write [[env.staging.kv_namespaces]] binding = "SESSIONS"'
        )
    ]


def test_one_mistake_in_several_environments_is_one_finding(tmp_path: Path) -> None:
    text = '[vars]\nA = ""\n[env.staging.vars]\nA = ""\n[env.production.vars]\nA = ""\n'
    assert told(tmp_path, text, shape(attribute("A", "str"), attribute("B", "str"))) == [
        (
            '11: Env.B: no binding of that name in wrangler.toml. Write [vars] B = "…", or [secrets] required = ["B"] if it is a '
            "secret. The same in [env.staging] and [env.production]"
        )
    ]
    assert told(tmp_path, text, shape()) == [
        (
            "9: Env has no attribute for the variable A (wrangler.toml:2 [vars]). Write A: str. "
            "The same in [env.staging] and [env.production]"
        )
    ]


def test_a_top_level_that_only_holds_what_others_inherit_is_not_checked(tmp_path: Path) -> None:
    text = 'name = "a"\n[env.staging.vars]\nA = ""\n[env.production.vars]\nA = ""\n'
    assert told(tmp_path, text, shape(attribute("A", "str"))) == []
    changed = text.replace("[env.production.vars]\nA", "[env.production.vars]\nAB")
    assert told(tmp_path, changed, shape(attribute("A", "str"))) == [
        (
            "10: Env.A: no binding of that name in [env.production] of wrangler.toml. Did you mean AB (wrangler.toml:5 "
            "[env.production.vars])?"
        )
    ]


# Secrets ------------------------------------------------------------------------------------------------------------


def test_a_secret_of_this_machine_is_a_binding_unless_the_file_names_its_secrets(tmp_path: Path) -> None:
    (tmp_path / ".dev.vars").write_text("KEY=1")
    env = shape(attribute("KEY", "Secret"))
    assert told(tmp_path, "", env) == []
    assert told(tmp_path, "[secrets]\nrequired = []", env) == [
        '10: Env.KEY: no binding of that name in wrangler.toml. Write [secrets] required = ["KEY"], and its value in .dev.vars'
    ]


# Durable Objects ----------------------------------------------------------------------------------------------------

MADE = 'migrations = [{ tag = "v1", new_sqlite_classes = ["Room", "Hall"] }]\n'
ROOM = f'name = "w"\nmain = "src/main.py"\n{MADE}[[durable_objects.bindings]]\nname = "ROOM"\nclass_name = "Room"\n'


def test_a_class_that_the_entry_module_does_not_have_is_told(tmp_path: Path) -> None:
    env = shape(attribute("ROOM", "DurableObjectNamespace"))
    place = '(wrangler.toml:5 [[durable_objects.bindings]] class_name = "Room")'
    assert told(tmp_path, ROOM, env, entry_names=frozenset(["Rooms"])) == [
        f"10: Env.ROOM: src/main.py has no Durable Object Room {place}. Did you mean Rooms?"
    ]
    assert told(tmp_path, ROOM, env, entry_names=frozenset(["app"])) == [
        f"10: Env.ROOM: src/main.py has no Durable Object Room {place}. Write class Room(DurableObject) there, or import it"
    ]
    assert told(tmp_path, ROOM, env, entry_names=frozenset(["Room"])) == []
    assert told(tmp_path, ROOM, env, entry_names=None) == []


def test_a_class_of_another_worker_is_not_looked_for(tmp_path: Path) -> None:
    env = shape(attribute("ROOM", "DurableObjectNamespace"))
    names = frozenset(["app"])
    assert told(tmp_path, ROOM + 'script_name = "other"', env, entry_names=names) == []
    assert len(told(tmp_path, ROOM + 'script_name = "w"', env, entry_names=names)) == 1


def test_the_class_in_the_annotation_must_be_the_class_in_the_file(tmp_path: Path) -> None:
    text = ROOM + '[[durable_objects.bindings]]\nname = "HALL"\nclass_name = "Hall"\n'
    room = attribute("ROOM", "DurableObjectNamespace[Hall]", arguments=("app.Hall",))
    hall = attribute("HALL", "DurableObjectNamespace[HallMethods]", arguments=("app.HallMethods",))
    assert told(tmp_path, text, shape(room, hall)) == [
        (
            "10: Env.ROOM is a DurableObjectNamespace[Hall], but wrangler.toml:5 [[durable_objects.bindings]] has class_name = "
            '"Room". Write ROOM: DurableObjectNamespace[Room]'
        )
    ]


@pytest.mark.parametrize(
    ("migration", "is_told"),
    [
        ("", True),
        ('{ tag = "v1", new_sqlite_classes = ["Hall"] }', True),
        ('{ tag = "v1", new_classes = ["Room"] }', False),
        (
            '{ tag = "v1", new_classes = ["Hall"] }, { tag = "v2", renamed_classes = [{ from = "Hall", to = "Room" }] }',
            False,
        ),
    ],
)
def test_a_class_that_no_migration_makes_is_told(tmp_path: Path, migration: str, is_told: bool) -> None:
    env = shape(attribute("ROOM", "DurableObjectNamespace"))
    text = ROOM.replace(MADE, f"migrations = [{migration}]\n")
    message = (
        "10: Env.ROOM: no migration makes the class Room (wrangler.toml:5 [[durable_objects.bindings]]), so the platform refuses "
        'to deploy it. Write [[migrations]] tag = "v1", new_sqlite_classes = ["Room"]'
    )
    assert told(tmp_path, text, env) == ([message] if is_told else [])
    assert told(tmp_path, text + 'script_name = "other"', env) == []


# Names in calls -----------------------------------------------------------------------------------------------------

CALL = 'rate_limit(kv_binding="SESSIONS")'


def test_a_binding_named_by_a_string_must_be_on_env_and_of_the_kind() -> None:
    env = shape(attribute("COUNTERS", "KVNamespace"), attribute("SESSIONS", "D1Database"))
    assert binding_problem(CALL, "COUNTERS", env) is None
    assert binding_problem(CALL, "SESSIONS", env) == (
        f"{CALL}: Env.SESSIONS is a D1Database, not a KVNamespace. Did you mean COUNTERS?"
    )
    assert binding_problem(CALL, "COUNTER", env) == f"{CALL}: Env has no attribute COUNTER. Did you mean COUNTERS?"
    assert binding_problem(CALL, "X", env) == f"{CALL}: Env has no attribute X. Write X: KVNamespace on Env"
    assert binding_problem(CALL, "A", shape(attribute("A", "str"))) == (
        f"{CALL}: Env.A is a str, not a KVNamespace. Env has no KVNamespace"
    )
    assert binding_problem(CALL, "A", shape(attribute("A", "x", kind=""))) is None


def test_the_words_for_parameters_and_order() -> None:
    assert unknown_parameter("idd", "/users/:id", ["id"], 'req.params["idd"]') == (
        'req.params["idd"]: the path /users/:id has no parameter idd. Did you mean id?'
    )
    assert unknown_parameter("x", "/users/:id", ["id"], "req.params.parse(X)") == (
        "req.params.parse(X): the path /users/:id has no parameter x. It has id"
    )
    assert unknown_parameter("id", "/users", [], 'req.params["id"]') == (
        'req.params["id"]: the path /users has no parameter id. It has none. Write /:id where it belongs'
    )
    assert absent_parameter("id", "/users/:id?", 'req.params["id"]') == (
        'req.params["id"]: the path /users/:id? matches without id too, where this raises. Write req.params.get("id")'
    )
    assert handler_parameters("show", ["id"], "/:id", ["id"]) is None
    assert handler_parameters("show", ["org", "id"], "/:id", ["id"]) == (
        "show reads :org, which the path /:id does not have: it has id. Register it on a path with :org"
    )
    assert handler_parameters("show", ["a", "b"], "/", []) == (
        "show reads :a and :b, which the path / does not have: it has no parameters. Register it on a path with :a and :b"
    )


QUEUES = '[[queues.producers]]\nbinding = "JOBS"\nqueue = "jobs"\n[[queues.consumers]]\nqueue = "jobs"\n'


def test_a_consumer_must_be_declared_and_take_what_is_sent(tmp_path: Path) -> None:
    configurations = configured(tmp_path, QUEUES)
    env = shape(attribute("JOBS", "Queue[Job]", arguments=("app.Job",)))
    assert queue_problem("jobs", ("app.Job", "Job"), env, configurations) is None
    assert queue_problem("jobs", None, env, configurations) is None
    assert queue_problem("jobs", ("app.Mail", "Mail"), None, configurations) is None
    assert queue_problem("jobs", ("app.Mail", "Mail"), env, configurations) == (
        'queue("jobs"): the consumer takes MessageBatch[Mail], but Env.JOBS (wrangler.toml:2 [[queues.producers]]) is a '
        "Queue[Job]. Write the same type in both"
    )
    assert queue_problem("job", None, env, configurations) == (
        'queue("job"): wrangler.toml has no consumer of that queue. Did you mean jobs?'
    )
    assert queue_problem("other", None, env, configurations) == (
        'queue("other"): wrangler.toml has no consumer of that queue. Write [[queues.consumers]] queue = "other"'
    )


# The configuration itself -------------------------------------------------------------------------------------------


def test_mistakes_of_the_file_are_findings_at_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "wrangler.toml"
    error = ConfigurationError(
        ["wrangler.toml:3: main must be a string.", ".dev.vars:2: x", "wrangler.toml: gone", "odd"]
    )
    assert configuration_findings(error, path) == [
        Finding("core-env", "main must be a string.", str(path), 3),
        Finding("core-env", "x", str(tmp_path / ".dev.vars"), 2),
        Finding("core-env", "gone", str(path), 1),
        Finding("core-env", "odd", str(path), 1),
    ]


def test_findings_are_sorted_and_told_once() -> None:
    a, b = Finding("core-env", "m", "a.py", 2), Finding("core-env", "m", "a.py", 1)
    assert sort_findings([a, b, a]) == [b, a]
    assert a.text == "a.py:2: error: m  [core-env]"


def test_a_message_stands_once_on_a_line_at_its_first_column() -> None:
    late, early, other = (
        Finding("core-worker", "twice", "a.py", line, column) for line, column in ((1, 9), (1, 4), (2, 4))
    )
    assert sort_findings([late, other, early]) == [early, other]


# Properties ---------------------------------------------------------------------------------------------------------

NAMES = [f"{word}_{number}" for word, number in itertools.product(["ALPHA", "BRAVO", "CHARLIE", "DELTA"], range(3))]
ARRAYS = {"kv": "KVNamespace", "d1": "D1Database", "r2": "R2Bucket", "vectorize": "Vectorize"}
VARIABLES = {"str": '"x"', "int": "1", "bool": "true", "list[str]": '["a"]', "float": "1.5"}


@st.composite
def mirrored(draw: st.DrawFn) -> tuple[dict[str, str], list[str | None]]:
    """Names with what they are annotated as, and the environments that have all of them."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=8))
    annotations = {n: draw(st.sampled_from([*ARRAYS.values(), *VARIABLES, "Secret"])) for n in names}
    choices: list[list[str | None]] = [[None], [None, "staging"], [None, "staging", "production"]]
    return annotations, draw(st.sampled_from(choices))


def write(annotations: dict[str, str], environments: list[str | None]) -> str:
    text = ""
    for environment in environments:
        prefix = f"env.{environment}." if environment else ""
        variables = {n: a for n, a in annotations.items() if a in VARIABLES}
        secrets = [n for n, a in annotations.items() if a == "Secret"]
        text += f"[{prefix}vars]\n" + "".join(f"{n} = {VARIABLES[a]}\n" for n, a in variables.items())
        text += f"[{prefix}secrets]\nrequired = {secrets}\n"
        for name, annotation in annotations.items():
            for kind, protocol in ARRAYS.items():
                if annotation == protocol:
                    extra = 'index_name = "i"\n' if kind == "vectorize" else ""
                    text += f'[[{prefix}{".".join(KINDS[kind].section)}]]\nbinding = "{name}"\n{extra}'
    return text


def env_of(annotations: dict[str, str]) -> EnvClass:
    return shape(*(attribute(name, shown) for name, shown in annotations.items()))


def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples. Not the base of all tests' folders: a file there would lie above every project."""
    folder = tmp_path_factory.getbasetemp() / "mirrored"
    folder.mkdir(exist_ok=True)
    return folder


@given(mirrored())
def test_an_env_and_a_file_that_mirror_each_other_have_no_finding(
    tmp_path_factory: pytest.TempPathFactory, given_: tuple[dict[str, str], list[str | None]]
) -> None:
    annotations, environments = given_
    assert told(own_folder(tmp_path_factory), write(annotations, environments), env_of(annotations)) == []


@given(mirrored(), st.data())
def test_any_single_change_is_exactly_one_finding_that_names_what_was_changed(
    tmp_path_factory: pytest.TempPathFactory, given_: tuple[dict[str, str], list[str | None]], data: st.DataObject
) -> None:
    annotations, environments = given_
    name = data.draw(st.sampled_from(list(annotations)))
    changed = dict(annotations)
    change = data.draw(
        st.sampled_from(["drop attribute", "drop binding", "rename attribute", "rename binding", "kind"])
    )
    text = write(annotations, environments)
    match change:
        case "drop attribute":
            del changed[name]
        case "drop binding":
            text = write({n: a for n, a in annotations.items() if n != name}, environments)
        case "rename attribute":
            changed = {f"{n}S" if n == name else n: a for n, a in annotations.items()}
        case "rename binding":
            text = write({f"{n}S" if n == name else n: a for n, a in annotations.items()}, environments)
        case _:
            other = "D1Database" if annotations[name] != "D1Database" else "KVNamespace"
            changed[name] = other
    findings = told(own_folder(tmp_path_factory), text, env_of(changed))
    assert len(findings) == 1
    assert name in findings[0]
