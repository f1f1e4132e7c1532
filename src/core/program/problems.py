"""Messages about names in calls: `create_app(Env)`, `rate_limit(kv_binding="…")`, handlers, middleware, queues.

Plain functions over plain values, which return the exact words of a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from core.config.model import Configuration
from core.program.envs import ANYTHING, EnvShape, attribute_name, declares_bindings
from core.program.wording import listed, with_article


def names_nothing(option: str, name: str, classes: Iterable[str]) -> str:
    """A name of an Env in the options that no class has (`core-env`).

    `option` is for example `mypy.ini [core-mypy] env`.
    """
    near = get_close_matches(name, sorted(classes), n=1)
    hint = f"Did you mean {near[0]}?" if near else "Write the full name of a class, or take it out"
    return f"{option} names {name}, and no class is called that. {hint}"


def not_bindings(name: str, module: str) -> str:
    """`create_app(Env)` over a class that is not an Env (`core-env`). `name` is the class's own, in `module`."""
    told = f"create_app({name}): {name} does not derive from Bindings, so it is compared with nothing"
    if module == "builtins":
        return f"{told}. Write class Env(Bindings), and create_app(Env)"
    return (
        f"{told}. Write class {name}(Bindings), or env = {module}.{name} under [core-mypy] in mypy.ini (a string under "
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


def binding_problem(call: str, name: str, shape: EnvShape, *, expected: str = "KVNamespace") -> str | None:
    """A binding named by a literal, `rate_limit(kv_binding="SESSIONS")`, against the Env it will run with
    (`core-binding`).

    `call` is how the argument is written, for example `rate_limit(kv_binding="SESSIONS")`.
    """
    attribute = next((a for a in shape.attributes if name in (a.attribute or a.name, a.name)), None)
    fitting = [a.attribute or a.name for a in shape.attributes if a.kind == expected]
    if attribute is not None:
        if attribute.kind in ANYTHING or attribute.kind == expected:
            return None
        hint = f"Did you mean {listed(fitting, 'or')}?" if fitting else f"{shape.name} has no {expected}"
        return f"{call}: {attribute_name(shape, attribute)} is {with_article(attribute.shown)}, not {with_article(expected)}. {hint}"
    near = get_close_matches(name, fitting, n=1) or get_close_matches(
        name, [a.attribute or a.name for a in shape.attributes], n=1
    )
    hint = f"Did you mean {near[0]}?" if near else f"Write {name}: {expected} on {shape.name}"
    return f"{call}: {shape.name} has no attribute {name}. {hint}"


def unknown_parameter(name: str, path: str, known: Sequence[str], read: str) -> str:
    """`req.params["idd"]` in a handler of `/users/:id` (`core-params`).

    `read` is how it is read, as messages show it.
    """
    near = get_close_matches(name, known, n=1)
    if near:
        hint = f"Did you mean {near[0]}?"
    elif known:
        hint = f"It has {listed(known)}"
    else:
        hint = f"It has none. Write /:{name} where it belongs"
    return f"{read}: the path {path} has no parameter {name}. {hint}"


def handler_parameters(handler: str, wanted: Sequence[str], path: str, known: Sequence[str]) -> str | None:
    """A handler over `Request[Env, U, Literal["org"]]` on a path without `:org` (`core-params`)."""
    lacking = [name for name in wanted if name not in known]
    if not lacking:
        return None
    has = f"it has {listed(known)}" if known else "it has no parameters"
    return (
        f"{handler} reads {listed([f':{name}' for name in lacking])}, which the path {path} does not have: {has}. "
        f"Register it on a path with {listed([f':{name}' for name in lacking])}"
    )


def answers_first(middleware: str, call: str) -> str:
    """A middleware that is declared to answer every request, before others in one registration (`core-params`)."""
    return f"{middleware} answers every request, so everything after it in {call} never runs. Put it last"


def queue_problem(
    queue: str, message: tuple[str, str] | None, shape: EnvShape | None, configurations: Sequence[Configuration]
) -> str | None:
    """A consumer `@app.queue("jobs")` over `MessageBatch[T]`, against the messages sent and the consumers declared
    (`core-queue`).

    `message` is T: its full name and how to show it; None when it is not known.
    """
    declared = [c for c in configurations if c.worker.queues.consumers]
    names = sorted({consumer.queue for c in declared for consumer in c.worker.queues.consumers})
    producers = [
        binding
        for c in configurations
        for binding in c.bindings.values()
        if binding.kind == "queue" and binding.entry.queue == queue
    ]
    if configurations and queue not in names:
        near = get_close_matches(queue, names, n=1)
        configuration = configurations[0]
        kind_text = (
            f'"queues.consumers": [{{ "queue": "{queue}" }}]'
            if configuration.is_json
            else f'[[queues.consumers]] queue = "{queue}"'
        )
        hint = f"Did you mean {near[0]}?" if near else f"Write {kind_text}"
        return f'queue("{queue}"): {configuration.path.name} has no consumer of that queue. {hint}'
    if message is None or shape is None or message[0] in ("typing.Any", "builtins.object", "object", "Any"):
        return None
    for binding in producers:
        attribute = shape.find(binding.name)
        if attribute is None or attribute.kind != "Queue" or len(attribute.arguments) != 1:
            continue
        sent = attribute.arguments[0]
        if sent not in ("", "typing.Any", "Any", message[0]):
            return (
                f'queue("{queue}"): the consumer takes MessageBatch[{message[1]}], but {attribute_name(shape, attribute)} '
                f"({binding.place}) is {with_article(attribute.shown)}. Write the same type in both"
            )
    return None


def wrong_env(call: str, handler: str, given: str, env: str) -> str:
    """A consumer or a handler of a trigger over another Env than its app's (`core-queue`, `core-env`)."""
    return f"{call}: {handler} takes env: {given}, but the app has {env}. Write env: {env}"
