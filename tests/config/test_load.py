"""A configuration file is read whole, or every mistake in it is told with file, line, key path and fix."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bindings.kinds import KINDS
from core.config import model
from core.config.load import load, load_all
from core.config.model import Configuration
from core.config.nearest import discover
from core.errors import ConfigurationError


def write(directory: Path, text: str | bytes, name: str = "wrangler.toml") -> Path:
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems(
    directory: Path, text: str | bytes, name: str = "wrangler.toml", environment: str | None = None
) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(write(directory, text, name), environment=environment)
    return caught.value.problems


EVERYTHING = """\
name = "everything"
main = "src/main.py"
base_dir = "."
account_id = "0123"
compatibility_date = "2026-04-01"
compatibility_flags = ["python_workers"]
workers_dev = true
preview_urls = false
routes = ["example.com/*", { pattern = "api.example.com", custom_domain = true }]

[triggers]
crons = ["*/5 * * * *", "0 0 1 * MON"]

[limits]
cpu_ms = 50

[placement]
mode = "smart"

[observability]
enabled = true
head_sampling_rate = 1
[observability.logs]
invocation_logs = false

[assets]
directory = "public"
binding = "ASSETS"
not_found_handling = "404-page"
run_worker_first = ["/api/*"]

[build]
command = "make"
watch_dir = ["src", "lib"]

[dev]
port = 8787

[core]
app = "main:app"
state = ".state"
[core.ai]
url = "http://127.0.0.1:11434/v1"
key = "AI_KEY"
models = { "@cf/meta/llama-3.1-8b-instruct" = "llama3.1:8b" }

[vars]
ORIGINS = "https://example.com"
LIMIT = 10
RATE = 0.5
ON = true
LIST = ["a", "b"]
TABLE = { a = { b = [1] } }

[secrets]
required = ["JWT_SECRET"]

[[kv_namespaces]]
binding = "SESSIONS"
id = "1"

[[d1_databases]]
binding = "DB"
database_name = "users"
migrations_dir = "sql"

[[r2_buckets]]
binding = "FILES"
bucket_name = "files"

[queues]
producers = [{ binding = "JOBS", queue = "jobs", delivery_delay = 5 }]
[[queues.consumers]]
queue = "jobs"
max_batch_size = 50
max_batch_timeout = 2.5
max_retries = 1
dead_letter_queue = "dead"
max_concurrency = 2
retry_delay = 3

[ai]
binding = "AI"

[durable_objects]
bindings = [{ name = "COUNTER", class_name = "Counter" }]

[[migrations]]
tag = "v1"
new_sqlite_classes = ["Counter"]
renamed_classes = [{ from = "Tally", to = "Counter" }]

[[services]]
binding = "AUTH"
service = "auth"
entrypoint = "Admin"
props = { a = 1 }

[[ratelimits]]
name = "LIMITER"
namespace_id = "1001"
simple = { limit = 100, period = 60 }

[[vectorize]]
binding = "INDEX"
index_name = "articles"

[[analytics_engine_datasets]]
binding = "EVENTS"

[[hyperdrive]]
binding = "POSTGRES"
id = "42"
localConnectionString = "postgres://user:password@localhost/db"

[[workflows]]
binding = "ORDERS"
name = "orders"
class_name = "Orders"
limits = { steps = 3 }

[[send_email]]
name = "MAIL"
allowed_destination_addresses = ["a@example.com"]

[images]
binding = "IMAGES"
[browser]
binding = "BROWSER"
[version_metadata]
binding = "VERSION"

[[mtls_certificates]]
binding = "CERTIFICATE"
certificate_id = "1"

[[dispatch_namespaces]]
binding = "DISPATCHER"
namespace = "production"
outbound = { service = "out", parameters = ["a"] }

[[tail_consumers]]
service = "logs"

[[unsafe.bindings]]
name = "ODD"
type = "odd"
more = 1

[[pipelines]]
binding = "STREAM"
pipeline = "p"

[[rules]]
type = "Data"
globs = ["**/*.bin"]

[something_new]
x = 1
"""


def test_every_table_of_the_platform_is_read(tmp_path: Path) -> None:
    configuration = load(write(tmp_path, EVERYTHING))
    worker = configuration.worker
    assert worker.name == "everything"
    assert worker.routes == ("example.com/*", model.Route("api.example.com", custom_domain=True))
    assert worker.triggers.crons == ("*/5 * * * *", "0 0 1 * MON")
    assert worker.limits == model.Limits(cpu_ms=50)
    assert worker.placement == model.Placement(mode="smart")
    assert worker.observability is not None
    assert worker.observability.head_sampling_rate == 1
    assert worker.observability.logs == model.ObservabilityPart(invocation_logs=False)
    assert worker.assets is not None
    assert worker.assets.run_worker_first == ("/api/*",)
    assert worker.build.watch_dir == ("src", "lib")
    assert worker.dev.port == 8787
    assert worker.core == model.CoreSettings(
        app="main:app",
        state=".state",
        ai=model.AiServer(
            "http://127.0.0.1:11434/v1", key="AI_KEY", models={"@cf/meta/llama-3.1-8b-instruct": "llama3.1:8b"}
        ),
    )
    assert worker.d1_databases == (model.D1Table("DB", database_name="users", migrations_dir="sql"),)
    assert configuration.migrations_directory(worker.d1_databases[0]) == tmp_path / "sql"
    assert worker.queues == model.Queues(
        producers=(model.QueueProducer("JOBS", "jobs", delivery_delay=5),),
        consumers=(
            model.QueueConsumer(
                "jobs",
                max_batch_size=50,
                max_batch_timeout=2.5,
                max_retries=1,
                dead_letter_queue="dead",
                max_concurrency=2,
                retry_delay=3,
            ),
        ),
    )
    assert worker.migrations == (
        model.DurableObjectMigration(
            "v1", new_sqlite_classes=("Counter",), renamed_classes=(model.RenamedClass("Tally", "Counter"),)
        ),
    )
    assert worker.unsafe.bindings == (model.UnsafeBinding("ODD", "odd", {"more": 1}),)
    assert worker.dispatch_namespaces[0].outbound == model.Outbound("out", parameters=("a",))


def test_bindings_have_their_kind_table_line_and_entry(tmp_path: Path) -> None:
    configuration = load(write(tmp_path, EVERYTHING))
    lines = EVERYTHING.split("\n")
    kinds = {binding.name: binding.kind for binding in configuration.bindings.values()}
    assert kinds == {
        "SESSIONS": "kv",
        "DB": "d1",
        "FILES": "r2",
        "JOBS": "queue",
        "AI": "ai",
        "COUNTER": "durable_object",
        "AUTH": "service",
        "ASSETS": "assets",
        "LIMITER": "rate_limit",
        "INDEX": "vectorize",
        "EVENTS": "analytics_engine",
        "POSTGRES": "hyperdrive",
        "ORDERS": "workflow",
        "MAIL": "send_email",
        "IMAGES": "images",
        "VERSION": "version_metadata",
        "BROWSER": "browser",
        "CERTIFICATE": "mtls_certificate",
        "DISPATCHER": "dispatch_namespace",
        "ODD": "unsafe",
        "STREAM": "pipeline",
        "ORIGINS": "var",
        "LIMIT": "var",
        "RATE": "var",
        "ON": "var",
        "LIST": "var",
        "TABLE": "var",
        "JWT_SECRET": "secret",
    }
    for binding in configuration.bindings.values():
        assert binding.line is not None
        assert binding.name in lines[binding.line - 1]
        assert binding.file == tmp_path / "wrangler.toml"
    sessions = configuration.bindings["SESSIONS"]
    assert sessions.entry == model.KVTable("SESSIONS", id="1")
    line = lines.index('binding = "SESSIONS"') + 1
    assert sessions.place == f"wrangler.toml:{line} [[kv_namespaces]]"
    assert sessions.protocol == "KVNamespace"
    assert configuration.bindings["TABLE"].entry == {"a": {"b": [1]}}
    assert configuration.bindings["JOBS"].table == "[[queues.producers]]"
    assert configuration.bindings["AI"].table == "[ai]"
    assert configuration.bindings["ORIGINS"].table == "[vars]"
    assert configuration.bindings["JWT_SECRET"].table == "[secrets]"


def test_what_has_no_type_is_listed_as_unchecked(tmp_path: Path) -> None:
    configuration = load(write(tmp_path, EVERYTHING))
    assert {(entry.key, entry.reason) for entry in configuration.unchecked} == {
        ("pipelines", "core does not check it"),
        ("something_new", "core does not know it, and does not check it"),
        ("dispatch_namespaces", "core has no type for it"),
        ("unsafe.bindings", "core has no type for it"),
    }
    assert all(entry.line for entry in configuration.unchecked)


def test_a_key_that_core_does_not_know_is_a_note(tmp_path: Path) -> None:
    text = """
    observability = { enabled = true, someday = { a = 1 } }
    brand_new = 1
    routes = ["a.example/*", { pattern = "b.example/*", later = 1 }]
    kv_namespaces = [{ binding = "A", id = "1", zzz = 1, idd = 2 }]
    [env.staging]
    kv_namespaces = [{ binding = "B", new = true }]
    [env.production]
    observability = { enabled = false }
    """
    path = write(tmp_path, text)
    unknown = "core does not know it, and does not check it"
    for environment, keys in (
        (
            None,
            ["brand_new", "observability.someday", "routes[1].later", "kv_namespaces[0].zzz", "kv_namespaces[0].idd"],
        ),
        ("staging", ["observability.someday", "routes[1].later", "env.staging.kv_namespaces[0].new"]),
        ("production", ["routes[1].later"]),
    ):
        noted = load(path, environment=environment).unchecked
        found = {entry.key: (entry.reason, entry.line) for entry in noted}
        assert set(found) == set(keys), environment
        assert all(reason == unknown and line for reason, line in found.values())
    # A letter away from a key that is not given yet, and takes the value.
    assert problems(tmp_path, "d1_database = []") == [
        "wrangler.toml:1: d1_database is not a key of the configuration. Did you mean d1_databases?"
    ]
    assert problems(tmp_path, "[observability]\nhead-sampling-rate = 1") == [
        "wrangler.toml:2: observability.head-sampling-rate is not a key of [observability]. Did you mean head_sampling_rate?"
    ]
    assert load(write(tmp_path, "d1_database = 'x'")).unchecked[0].reason == unknown


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml = load(write(tmp_path, EVERYTHING))
    text = json.dumps(tomllib.loads(EVERYTHING), indent=2)
    for name in ("wrangler.json", "wrangler.jsonc"):
        other = load(write(tmp_path, "// a comment\n" + text, name))
        assert other.worker == toml.worker
        assert {n: b.kind for n, b in other.bindings.items()} == {n: b.kind for n, b in toml.bindings.items()}
        assert other.bindings["SESSIONS"].table == '"kv_namespaces"'


def test_an_empty_file_is_a_configuration(tmp_path: Path) -> None:
    configuration = load(write(tmp_path, ""))
    assert configuration.worker == model.Worker()
    assert configuration.bindings == {}


# Mistakes -----------------------------------------------------------------------------------------------------------


def test_five_mistakes_are_one_error_with_five_entries(tmp_path: Path) -> None:
    text = """\
name = "users"
main = 3

[[kv_namespaces]]
binding = "SESSIONS"

[[kv_namespaces]]
id = "2"

[[d1_databases]]
binding = "SESSIONS"

[[r2_buckets]]
binding = "FILES"
bukket_name = "files"

[[queues.consumers]]
queue = "jobs"
max_batch_size = 101
"""
    assert problems(tmp_path, text) == [
        'wrangler.toml:2: main must be a string, not a whole number. Write "3".',
        (
            "wrangler.toml:7: kv_namespaces[1].binding is missing. Every KV namespace needs the name of its attribute on "
            'Env, for example binding = "COUNTERS".'
        ),
        (
            "wrangler.toml:11: d1_databases[0].binding: SESSIONS is the name of another binding on line 5 already. "
            "Rename one of them."
        ),
        "wrangler.toml:15: r2_buckets[0].bukket_name is not a key of [[r2_buckets]]. Did you mean bucket_name?",
        "wrangler.toml:19: queues.consumers[0].max_batch_size = 101 must be 1 to 100 messages.",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = true", '1: name must be a string, not true. Write "true".'),
        (
            "main = 'app/main.py'\nbase_dir = './src'",
            '2: base_dir: main = "app/main.py" is not in base_dir = "./src". Write the folder that it is in.',
        ),
        (
            "base_dir = 'src'\nmain = 'src/main.py'\n[env.test]\nmain = 'src2/main.py'",
            '4: env.test.main: main = "src2/main.py" is not in base_dir = "src". Write the folder that it is in.',
        ),
        ("name = 'My App'", '1: name = "My App" must be lower-case letters, digits, - and _. Write "my-app".'),
        (
            "compatibility_date = 2026-04-01",
            '1: compatibility_date must be a string, not a date or time. Write "2026-04-01".',
        ),
        (
            "compatibility_date = 'today'",
            '1: compatibility_date = "today" is not a date. Write YYYY-MM-DD, for example "2026-04-01".',
        ),
        (
            "compatibility_date = '2026-02-30'",
            '1: compatibility_date = "2026-02-30" is not a date. Write YYYY-MM-DD, for example "2026-04-01".',
        ),
        (
            "compatibility_flags = 'python_workers'",
            '1: compatibility_flags must be a list of strings, not a string. Write ["python_workers"].',
        ),
        ("compatibility_flags = [1]", '1: compatibility_flags[0] must be a string, not a whole number. Write "1".'),
        (
            "workers_dev = 'true'",
            "1: workers_dev must be true or false, not a string. Write true or false, without quotes.",
        ),
        (
            "kv_namespaces = 'x'",
            "1: kv_namespaces must be a list of tables, not a string. Write [[kv_namespaces]].",
        ),
        (
            "[kv_namespaces]\nbinding = 'A'",
            "1: kv_namespaces must be an array of tables, not one table. Write [[kv_namespaces]].",
        ),
        (
            "kv_namespaces = [1]",
            "1: kv_namespaces[0] must be a table, not a whole number. It has binding, id, preview_id and remote.",
        ),
        ("kv_namespaces = ['A']", '1: kv_namespaces[0] must be a table, not a string. Write binding = "A" in it.'),
        ("[[ai]]\nbinding = 'AI'", "1: ai must be one table, not a list. Write [ai]."),
        ("ai = 'AI'", '1: ai must be a table, not a string. Write binding = "AI" in it.'),
        (
            "[ai]\n",
            '1: ai.binding is missing. Every AI binding needs the name of its attribute on Env, for example binding = "AI".',
        ),
        (
            "[[kv_namespaces]]\nbindng = 'A'",
            "2: kv_namespaces[0].bindng is not a key of [[kv_namespaces]]. Did you mean binding?",
        ),
        (
            "[[kv_namespaces]]\nbinding = 'A'\nids = 'x'",
            "3: kv_namespaces[0].ids is not a key of [[kv_namespaces]]. Did you mean id?",
        ),
        ("kv_namespace = []", "1: kv_namespace is not a key of the configuration. Did you mean kv_namespaces?"),
        (
            "[[queues.producers]]\nbinding = 'A'",
            '1: queues.producers[0].queue is missing. Every queue producer needs the name of its queue, for example queue = "jobs".',
        ),
        (
            "[[queues.consumers]]\nmax_retries = '3'",
            (
                '1: queues.consumers[0].queue is missing. Every queue consumer needs the name of its queue, for example queue = "jobs".\n'
                "wrangler.toml:2: queues.consumers[0].max_retries must be a whole number, not a string. Write 3, without quotes."
            ),
        ),
        (
            "[[queues.consumers]]\nqueue = 'a'\n[[queues.consumers]]\nqueue = 'a'",
            '3: queues.consumers[1]: the queue "a" has a consumer on line 1 already. Remove one.',
        ),
        (
            "[[queues.consumers]]\nqueue = 'a'\nmax_batch_timeout = 'soon'",
            "3: queues.consumers[0].max_batch_timeout must be a number, not a string. Write a number, without quotes.",
        ),
        (
            "[[queues.producers]]\nbinding = 'A'\nqueue = 'a'\ndelivery_delay = 86401",
            "4: queues.producers[0].delivery_delay = 86401 must be 0 to 86,400 seconds.",
        ),
        (
            "[[durable_objects.bindings]]\nclass_name = 'Counter'",
            (
                "1: durable_objects.bindings[0].name is missing. Every Durable Object binding needs the name of its attribute "
                'on Env, for example name = "COUNTER".'
            ),
        ),
        (
            "[[durable_objects.bindings]]\nname = 'COUNTER'",
            (
                "1: durable_objects.bindings[0].class_name is missing. Every Durable Object binding needs the name of its "
                'class, for example class_name = "Counter".'
            ),
        ),
        (
            "[[migrations]]\nnew_classes = ['A']",
            '1: migrations[0].tag is missing. Every migration needs a tag of its own, for example tag = "v1".',
        ),
        (
            "[[ratelimits]]\nname = 'L'\nnamespace_id = '1'\nsimple = { limit = 0, period = 30 }",
            (
                "4: ratelimits[0].simple.limit = 0 must be 1 to 2,147,483,647 requests.\n"
                "wrangler.toml:4: ratelimits[0].simple.period = 30 must be 10 or 60 seconds."
            ),
        ),
        (
            "[[ratelimits]]\nname = 'L'\nnamespace_id = '1'",
            (
                "1: ratelimits[0].simple is missing. Every rate limit needs its limit and period, for example "
                "simple = { limit = 100, period = 60 }."
            ),
        ),
        (
            "[assets]\nhtml_handling = 'nome'",
            (
                '2: assets.html_handling must be "auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash" or "none", '
                'not "nome". Did you mean "none"?'
            ),
        ),
        (
            "[assets]\nrun_worker_first = 1",
            "2: assets.run_worker_first must be true or false or a list of strings, not a whole number.",
        ),
        ("routes = [1]", "1: routes[0] must be a string or a table, not a whole number."),
        (
            "routes = [{}]",
            '1: routes[0].pattern is missing. Every route needs its pattern, for example pattern = "example.com/*".',
        ),
        ("route = 'a'\nroutes = ['b']", "1: route and routes say the same. Keep routes."),
        (
            "[triggers]\ncrons = ['* * * *']",
            '2: triggers.crons[0] = "* * * *" must have five fields. Write "*/5 * * * *" for every five minutes.',
        ),
        (
            "[triggers]\ncrons = ['0 24 * * *']",
            '2: triggers.crons[0] = "0 24 * * *": the hour is wrong: 24 is not from 0 to 23.',
        ),
        (
            "[triggers]\ncrons = ['0 0 30 2 *']",
            '2: triggers.crons[0] = "0 0 30 2 *": never comes: no month has such a day.',
        ),
        ("[vars]\nA = 2020-01-01", "2: vars.A is a date or time, which JSON does not have. Put it in quotes."),
        ("[vars]\nA = [nan]", "2: vars.A[0] is a number, which JSON does not have. Put it in quotes."),
        ("vars = 1", "1: vars must be a table, not a whole number. Write its keys below its header."),
        ("[vars]\n\"A-B\" = ''", '2: vars.A-B: "A-B" cannot be the name of an attribute on Env. Write A_B instead.'),
        (
            "[vars]\nclass = ''",
            '2: vars.class: "class" cannot be the name of an attribute on Env. Write CLASS instead.',
        ),
        (
            "[secrets]\nrequired = ['self']",
            '2: secrets.required[0]: "self" cannot be the name of an attribute on Env. Write SELF instead.',
        ),
        (
            "[[kv_namespaces]]\nbinding = '1A'",
            '2: kv_namespaces[0].binding: "1A" cannot be the name of an attribute on Env. Write A instead.',
        ),
        ("secrets = ['A']", "1: secrets must be one table, not a list. Write [secrets]."),
        ("[secrets]\nrequired = 'A'", '2: secrets.required must be a list of strings, not a string. Write ["A"].'),
        (
            "[vars]\nA = ''\n[secrets]\nrequired = ['A']",
            "4: secrets.required[0]: A is the name of another binding on line 2 already. Rename one of them.",
        ),
        (
            "[core.ai]\nmodel = 'x'",
            '1: core.ai.url is missing. Every AI server needs the address of the server, for example url = "http://127.0.0.1:11434/v1".',
        ),
        (
            "[core.ai]\nurl = 'http://x'\nmodels = { a = 1 }",
            '3: core.ai.models must have strings only, but a is a whole number. Write "1".',
        ),
        ("[core]\napps = 'x'", "2: core.apps is not a key of [core]. Did you mean app?"),
        (
            "[[unsafe.bindings]]\nname = 'X'",
            '1: unsafe.bindings[0] needs type, a string, for example type = "ratelimit".',
        ),
        ("[dev]\nport = 70000", "2: dev.port = 70000 must be 0 to 65,535 as a port."),
        (
            "[observability]\nhead_sampling_rate = 2",
            "2: observability.head_sampling_rate = 2 must be 0 to 1 of all requests.",
        ),
        ("env = 1", "1: env must be a table of environments. Write [env.staging]."),
        ("[env]\nstaging = 1", "2: env.staging must be a table. Write [env.staging]."),
        ("[env.staging.dev]\nport = 1", "1: env.staging.dev cannot differ by environment. Move it to the top level."),
        ("[env.staging]\nvar = {}", "2: env.staging.var is not a key of the configuration. Did you mean vars?"),
        (
            "[[env.staging.kv_namespaces]]\nid = ''",
            (
                "1: env.staging.kv_namespaces[0].binding is missing. Every KV namespace needs the name of its attribute on "
                'Env, for example binding = "COUNTERS".'
            ),
        ),
    ],
)
def test_a_mistake_is_told_with_line_key_path_and_fix(text: str, told: str, tmp_path: Path) -> None:
    assert "\n".join(problems(tmp_path, text)) == f"wrangler.toml:{told}"


def test_json_is_told_in_the_words_of_json(tmp_path: Path) -> None:
    limit = '"ratelimits": [{"name": "L", "namespace_id": "1"}]'
    text = f'{{\n "kv_namespaces": {{ "binding": "A" }},\n "ai": [],\n "d1_databases": [{{}}],\n "$schema": "x",\n {limit}\n}}'
    assert problems(tmp_path, text, "wrangler.jsonc") == [
        'wrangler.jsonc:2: kv_namespaces must be an array of tables, not one table. Write "kv_namespaces": [{ … }].',
        'wrangler.jsonc:3: ai must be one table, not a list. Write "ai": { … }.',
        (
            "wrangler.jsonc:4: d1_databases[0].binding is missing. Every D1 database needs the name of its attribute on Env, "
            'for example "binding": "DB".'
        ),
        (
            "wrangler.jsonc:6: ratelimits[0].simple is missing. Every rate limit needs its limit and period, for example "
            '"simple": {"limit": 100, "period": 60}.'
        ),
    ]


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        (
            "name = 'a'\nmain =\n",
            "wrangler.toml",
            "wrangler.toml:2: this is not TOML (column 7): invalid value: main =. Put strings in quotes, and each key on its own line.",
        ),
        (
            "name = 'a'\nname = 'b'\n",
            "wrangler.toml",
            (
                "wrangler.toml:2: this is not TOML (column 11): cannot overwrite a value: name = 'b'. "
                "Put strings in quotes, and each key on its own line."
            ),
        ),
        (
            f"name = 'a'\nport = [1, -{'9_9' * 3000}]\n",
            "wrangler.toml",
            (
                f"wrangler.toml:2: this is not TOML (column 12): number too long: port = [1, -{('9_9' * 20)[:48]}. "
                "Put strings in quotes, and each key on its own line."
            ),
        ),
        (
            f"\nport = 0x{'f' * 5000} # it has a blank after it, and {' ' * 5000}\n",
            "wrangler.toml",
            (
                f"wrangler.toml:2: this is not TOML (column 8): number too long: port = 0x{'f' * 51}. "
                "Put strings in quotes, and each key on its own line."
            ),
        ),
        (
            f'{{\n  "a": {"9" * 5000}\n}}',
            "wrangler.jsonc",
            "wrangler.jsonc:2: this is not JSON (column 8): this number is too long. Put it in double quotes.",
        ),
        (
            b"a = 1\nb = '\xff'",
            "wrangler.toml",
            "wrangler.toml:2: this is not UTF-8 (byte 0xff). Save the file as UTF-8.",
        ),
        (
            "{\n  a: 1\n}",
            "wrangler.jsonc",
            "wrangler.jsonc:2: this is not JSON (column 3): a key in double quotes is wanted here.",
        ),
        ("[]", "wrangler.json", "wrangler.json:1: this must be a JSON object, not a list. Begin it with {."),
    ],
)
def test_a_file_that_cannot_be_read_is_one_clear_error(text: str | bytes, name: str, told: str, tmp_path: Path) -> None:
    assert problems(tmp_path, text, name) == [told]


def test_a_missing_file_a_directory_and_an_unknown_environment_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path / "wrangler.toml")
    assert str(caught.value) == (
        f"wrangler.toml: there is no such file: {tmp_path / 'wrangler.toml'}. Write one with name and main, or name another file."
    )
    with pytest.raises(ConfigurationError, match="this is a directory"):
        load(tmp_path)
    text = "[env.staging]\n[env.production]\n"
    assert problems(tmp_path, text, environment="stagin") == [
        "wrangler.toml: there is no environment stagin. Did you mean staging?"
    ]
    assert problems(tmp_path, text, environment="x") == [
        "wrangler.toml: there is no environment x. There is staging or production."
    ]
    assert problems(tmp_path, "", environment="x") == [
        "wrangler.toml: there is no environment x. Write [env.x], or leave the environment out."
    ]


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    assert load(write(tmp_path, b'\xef\xbb\xbfname = "a"')).worker.name == "a"


# Environments -------------------------------------------------------------------------------------------------------

ENVIRONMENTS = """\
name = "app"
main = "main.py"
compatibility_date = "2026-04-01"

[vars]
A = "top"

[triggers]
crons = ["0 0 * * *"]

[assets]
directory = "public"
binding = "ASSETS"

[[kv_namespaces]]
binding = "KV"

[dev]
port = 1

[[rules]]
type = "Data"
globs = ["**/*.bin"]

[python_modules]
exclude = ["**/*.pyi"]

[cache]
enabled = true

[[pipelines]]
binding = "P"

[env.staging]
compatibility_date = "2026-05-01"
[env.staging.vars]
B = "staging"

[env.production]
name = "other"
triggers = { crons = [] }
"""


def test_bindings_and_vars_are_not_inherited_and_the_rest_is(tmp_path: Path) -> None:
    path = write(tmp_path, ENVIRONMENTS)
    top, staging, production = load_all(path)
    assert [c.environment for c in (top, staging, production)] == [None, "staging", "production"]
    assert top.environments == ["staging", "production"]
    assert set(top.bindings) == {"A", "KV", "P", "ASSETS"}
    assert set(staging.bindings) == {"B", "ASSETS"}
    assert set(production.bindings) == {"ASSETS"}
    assert staging.bindings["B"].table == "[env.staging.vars]"
    assert staging.bindings["ASSETS"].table == "[assets]"
    assert staging.worker.name == "app-staging"
    assert staging.worker.main == "main.py"
    assert staging.worker.compatibility_date == "2026-05-01"
    assert staging.worker.triggers.crons == ("0 0 * * *",)
    assert staging.worker.kv_namespaces == ()
    assert staging.worker.vars == {"B": "staging"}
    assert staging.worker.dev.port == 1
    assert staging.worker.rules == (model.Rule("Data", ("**/*.bin",)),)
    assert staging.worker.python_modules == model.PythonModules(("**/*.pyi",))
    assert [entry.key for entry in staging.unchecked] == ["cache"]
    assert production.worker.name == "other"
    assert production.worker.triggers.crons == ()
    assert load(path, environment="staging") == staging


def test_one_binding_may_stand_in_several_environments(tmp_path: Path) -> None:
    text = "[vars]\nA = ''\n[env.staging.vars]\nA = ''\n[env.other.vars]\nA = ''"
    assert [c.bindings["A"].line for c in load_all(write(tmp_path, text))] == [2, 4, 6]


# Secrets ------------------------------------------------------------------------------------------------------------


def test_the_names_of_local_secrets_are_bindings_and_variables_keep_their_kind(tmp_path: Path) -> None:
    write(tmp_path, "# local\nTOKEN=hunter2\nA=b\n", ".dev.vars")
    configuration = load(write(tmp_path, "[vars]\nA = ''\n[secrets]\nrequired = ['KEY']"))
    token = configuration.bindings["TOKEN"]
    assert (token.kind, token.table, token.place, token.entry) == ("secret", "", ".dev.vars:2", None)
    assert configuration.bindings["KEY"].place == "wrangler.toml:4 [secrets]"
    assert configuration.bindings["A"].kind == "var"
    assert "hunter2" not in repr(configuration)


def test_a_mistake_in_a_file_of_secrets_stands_beside_those_of_the_configuration(tmp_path: Path) -> None:
    write(tmp_path, "TOKEN\n", ".dev.vars")
    assert problems(tmp_path, "main = 1\n[env.a]\n[env.b]") == [
        'wrangler.toml:1: main must be a string, not a whole number. Write "1".',
        ".dev.vars:1: this is not KEY=value. Write an equals sign, or # before a comment",
    ]


# Finding the file ---------------------------------------------------------------------------------------------------


def test_the_nearest_file_is_found_json_first(tmp_path: Path) -> None:
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    toml = write(tmp_path, "")
    assert discover(inner) == toml
    assert discover(toml) == toml
    jsonc = write(tmp_path, "{}", "wrangler.jsonc")
    assert discover(inner) == jsonc
    nearer = write(tmp_path / "src", "")
    assert discover(inner) == nearer


def test_no_file_anywhere_is_a_clear_error(tmp_path: Path) -> None:
    # Above a temporary folder there may be one that is someone else's; above the root there is nothing.
    root = Path(tmp_path.anchor)
    with pytest.raises(ConfigurationError) as caught:
        discover(root)
    assert str(caught.value) == (
        f"{root}: no wrangler.toml, wrangler.json or wrangler.jsonc here or above. Write one with name and main"
    )


# Properties ---------------------------------------------------------------------------------------------------------


def test_the_digest_changes_with_the_file_and_the_names_of_secrets(tmp_path: Path) -> None:
    first = load(write(tmp_path, "name = 'a'")).digest
    assert load(write(tmp_path, "name = 'a'")).digest == first
    assert load(write(tmp_path, "name = 'b'")).digest != first
    write(tmp_path, "A=1", ".dev.vars")
    assert load(write(tmp_path, "name = 'a'")).digest != first


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 200)
    | st.floats()
    | st.sampled_from(["", "A", "B", "1", "smart", "a/b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["binding", "name", "queue", "id", "class_name", "producers", "consumers", "bindings", "required", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
sections = st.sampled_from(
    [*sorted({kind.section[0] for kind in KINDS.values()}), "name", "main", "triggers", "core", "zzz"]
)
files = st.dictionaries(sections, anything, max_size=5)


@pytest.mark.slow
@given(files, st.none() | files)
def test_any_json_is_a_configuration_or_told_in_lines_that_end_with_a_fix(
    tmp_path_factory: pytest.TempPathFactory, top: dict[str, Any], staging: dict[str, Any] | None
) -> None:
    directory = tmp_path_factory.getbasetemp()
    data = top if staging is None else {**top, "env": {"staging": staging}}
    path = write(
        directory, json.dumps(data).replace("NaN", "0").replace("-Infinity", "0").replace("Infinity", "0"), "any.json"
    )
    try:
        loaded: list[Configuration] = load_all(path)
    except ConfigurationError as error:
        told = error.problems
    else:
        assert len(loaded) == (1 if staging is None else 2)
        return
    assert told
    assert all(line.startswith("any.json:1: ") for line in told)
    assert all(line[-1] in ".?" for line in told)
    assert len(set(told)) == len(told)


@pytest.mark.slow
@pytest.mark.parametrize("text", [".".join("a" * 5000) + " = 1", f"[{'.'.join('a' * 5000)}]", "x = " + "[" * 100_000])
def test_a_document_that_is_too_deep_is_a_mistake_in_a_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrangler.toml"
    path.write_text(text)
    with pytest.raises(
        ConfigurationError, match=r"^wrangler\.toml.*(deeper than 200 levels|nested too deeply).*flatter"
    ):
        load(path)
