"""The start-up screen: the address, the bindings and where they live, the routes; and the findings of `core check`."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.assembly.project import Loaded
from core.dev.guard import is_loopback
from core.dev.options import Options
from core.dev.terminal import Style, core_version, table
from core.errors import ConfigurationError, DeveloperError
from core.runtime.listening import authority

_MOST_ROUTES = 40


def start_screen(
    options: Options, address: tuple[Any, ...], loaded: Loaded | None, explains: bool, style: Style
) -> list[str]:
    name = (loaded.configuration.worker.name if loaded is not None else None) or options.root.name
    environment = f" ({options.environment})" if options.environment else ""
    versions = f"core {core_version('from source')}, Python {platform.python_version()}"
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(options.host, options.host)
    url = f"http://{authority(reached, address[1])}"
    lines = ["", f"  {style(name, 'bold')}{environment}  {style(versions, 'dim')}", ""]
    lines.append(f"  {style('Address', 'bold')}    {style(url, 'cyan')}")
    if explains:
        # Where other machines could reach it, its address has the token.
        token = "" if is_loopback(options.host) else f"?token={options.token}"
        lines.append(f"  {style('Explorer', 'bold')}   {style(f'{url}/_core/{token}', 'cyan')}")
    lines.append(f"  {style('State', 'bold')}      {options.state_folder}")
    if loaded is not None:
        lines += _bindings(loaded, style)
        lines += _routes(loaded, style)
        if loaded.app.queues or loaded.crons:
            lines += _background(loaded, style)
        if loaded.notices:
            lines += ["", *(f"  {style('!', 'yellow')} {notice}" for notice in loaded.notices)]
    if not explains:
        reason = "is reached from other machines, so there is no explorer and no error page. --explorer turns them on, behind a token"
        lines += ["", f"  {style('!', 'yellow')} {options.host} {reason}"]
    keys = "Ctrl-C stops" + (", and saving a file loads it again" if options.reload else "")
    lines += ["", style(f"  {keys}", "dim"), ""]
    return lines


def _bindings(loaded: Loaded, style: Style) -> list[str]:
    kinds = {name: binding.kind for name, binding in loaded.configuration.bindings.items()}
    plain = [name for name, kind in kinds.items() if kind in ("var", "secret")]
    absent = loaded.bindings.absent
    rows = [
        (name, kind, "not embedded" if name in absent else "embedded")
        for name, kind in kinds.items()
        if name not in plain
    ]
    if not rows and not plain:
        return []
    lines = ["", f"  {style('Bindings', 'bold')}", *table(rows, indent="    ")]
    if plain:
        lines.append(f"    {style('vars and secrets: ' + ', '.join(plain), 'dim')}")
    return lines


def _routes(loaded: Loaded, style: Style) -> list[str]:
    routes = loaded.app.routes
    rows = [(route.method, route.path, route.handler) for route in routes[:_MOST_ROUTES]]
    if not rows:
        return ["", f"  {style('Routes', 'bold')}", '    none yet: @app.get("/") over an async function makes one']
    lines = ["", f"  {style('Routes', 'bold')}", *table(rows, indent="    ")]
    if len(routes) > _MOST_ROUTES:
        lines.append(style(f"    and {len(routes) - _MOST_ROUTES} more: core routes", "dim"))
    return lines


def _background(loaded: Loaded, style: Style) -> list[str]:
    rows = [("queue", name, "consumed here") for name in loaded.app.queues]
    rows += [("cron", cron, "in UTC") for cron in loaded.crons]
    return ["", f"  {style('In the background', 'bold')}", *table(rows, indent="    ")]


def finding_lines(found: Sequence[str], style: Style) -> list[str]:
    """Return the findings of `core check` as lines of the screen."""
    if not found:
        return []
    lines = [f"  {style('core check', 'bold')}"]
    lines += [f"    {style(finding, 'yellow')}" for finding in found[:10]]
    if len(found) > 10:
        lines.append(style(f"    and {len(found) - 10} more: core check", "dim"))
    return lines


def findings_of(config: Path) -> list[str]:
    """The findings in a program and its configuration file, as `file:line: error: message  [code]`."""
    from core.config.load import load_all
    from core.program.findings import configuration_findings, sort_findings
    from core.program.proof import Options, check_program
    from core.program.settings import find_settings

    try:
        settings = find_settings(config.parent)
        configurations = load_all(config)
    except ConfigurationError as error:
        found = configuration_findings(error, config)
    except DeveloperError as error:
        return [f"error: {error}"]
    else:
        chosen = configurations if settings is None else settings.chosen(configurations)
        found = sort_findings(check_program(chosen, Options.of(settings)))
    return [finding.text.removeprefix(f"{config.parent}{os.sep}") for finding in found]
