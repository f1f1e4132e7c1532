"""Messages about names in calls: `create_app(Env)`, `rate_limit(kv_binding="…")`, handlers, middleware, queues.

Plain functions over plain values, which return the exact words of a finding.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.config.model import Configuration
from core.config.words import did_you_mean, listed
from core.program.envs import ANYTHING, EnvClass, attribute_name, declares_bindings
from core.program.wording import with_article


def not_bindings(name: str, module: str) -> str:
    """`create_app(Env)` over a class that is not an Env (`core-env`). `name` is the class's own, in `module`."""
    problem = f"create_app({name}): {name} does not derive from Bindings, so it is compared with nothing"
    if module == "builtins":
        return f"{problem}. Write class Env(Bindings), and create_app(Env)"
    return (
        f"{problem}. Write class {name}(Bindings), or env = {module}.{name} under [core-mypy] in mypy.ini (a string under "
        "[tool.core-mypy] in pyproject.toml)"
    )


def no_env(configurations: Sequence[Configuration]) -> str | None:
    """A program without any Env, whose configuration has bindings (`core-env`)."""
    binding = declares_bindings(configurations)
    if binding is None:
        return None
    return (
        f"{binding.place} declares {binding.name}, and the program has no Env to compare it with. "
        "Write class Env(Bindings) as `core types` does, and create_app(Env)"
    )


def binding_problem(call: str, name: str, env: EnvClass, *, expected: str = "KVNamespace") -> str | None:
    """A binding named by a literal, `rate_limit(kv_binding="SESSIONS")`, against the Env it will run with
    (`core-binding`).

    `call` is how the argument is written, for example `rate_limit(kv_binding="SESSIONS")`.
    """
    attribute = next((a for a in env.attributes if name in (a.attribute, a.name)), None)
    fitting = [a.attribute for a in env.attributes if a.kind == expected]
    if attribute is not None:
        if attribute.kind in ANYTHING or attribute.kind == expected:
            return None
        hint = f"Did you mean {listed(fitting, 'or')}?" if fitting else f"{env.name} has no {expected}"
        return f"{call}: {attribute_name(env, attribute)} is {with_article(attribute.shown)}, not {with_article(expected)}. {hint}"
    hint = did_you_mean(name, [a.attribute for a in env.attributes], f"Write {name}: {expected} on {env.name}")
    hint = did_you_mean(name, fitting, hint)
    return f"{call}: {env.name} has no attribute {name}. {hint}"


def unknown_parameter(name: str, path: str, known: Sequence[str], read: str) -> str:
    """`req.params["idd"]` in a handler of `/users/:id` (`core-params`).

    `read` is how it is read, as messages show it.
    """
    other = f"It has {listed(known, 'and')}" if known else f"It has none. Write /:{name} where it belongs"
    hint = did_you_mean(name, known, other)
    return f"{read}: the path {path} has no parameter {name}. {hint}"


def absent_parameter(name: str, path: str, read: str) -> str:
    """`req.params["id"]` in a handler of `/users/:id?` (`core-params`)."""
    return f'{read}: the path {path} matches without {name} too, where this raises. Write req.params.get("{name}")'


def handler_parameters(handler: str, wanted: Sequence[str], path: str, known: Sequence[str]) -> str | None:
    """A handler over `Request[Env, U, Literal["org"]]` on a path without `:org` (`core-params`)."""
    lacking = [f":{name}" for name in wanted if name not in known]
    if not lacking:
        return None
    names = listed(lacking, "and")
    has = f"it has {listed(known, 'and')}" if known else "it has no parameters"
    return f"{handler} reads {names}, which the path {path} does not have: {has}. Register it on a path with {names}"


def queue_problem(
    queue: str, message: tuple[str, str] | None, env: EnvClass | None, configurations: Sequence[Configuration]
) -> str | None:
    """A consumer `@app.queue("jobs")` over `MessageBatch[T]`, against the messages sent and the consumers declared
    (`core-queue`).

    `message` is T: its full name and how to show it; None when it is not known.
    """
    names = sorted({consumer.queue for c in configurations for consumer in c.worker.queues.consumers})
    if configurations and queue not in names:
        configuration = configurations[0]
        kind_text = (
            f'"queues.consumers": [{{ "queue": "{queue}" }}]'
            if configuration.is_json
            else f'[[queues.consumers]] queue = "{queue}"'
        )
        hint = did_you_mean(queue, names, f"Write {kind_text}")
        return f'queue("{queue}"): {configuration.path.name} has no consumer of that queue. {hint}'
    if message is None or env is None or message[0] in ("typing.Any", "builtins.object", "object", "Any"):
        return None
    attributes = {one.name: one for one in env.attributes if one.kind == "Queue" and len(one.arguments) == 1}
    for binding in (one for configuration in configurations for one in configuration.bindings.values()):
        attribute = attributes.get(binding.name)
        if attribute is None or binding.kind != "queue" or binding.entry.queue != queue:
            continue
        if attribute.arguments[0] not in ("", "typing.Any", "Any", message[0]):
            return (
                f'queue("{queue}"): the consumer takes MessageBatch[{message[1]}], but {attribute_name(env, attribute)} '
                f"({binding.place}) is {with_article(attribute.shown)}. Write the same type in both"
            )
    return None
