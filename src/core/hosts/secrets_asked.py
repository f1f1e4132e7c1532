"""The secrets that an Env asks for by its fields, for whoever reads their values before it is built.

No worker loads this but that of a build: a start counts its functions.
"""

from __future__ import annotations

from core.bindings.secret import Secret
from core.env import fields_of


def secrets_asked(env_class: type, /) -> dict[str, bool]:
    """The names under which an Env takes a secret, if the configuration has nothing else there, and True where it
    cannot do without. Raises EnvError as `fields_of` does.
    """
    return {
        field.name: not field.optional
        for field in fields_of(env_class)
        if field.kind is Secret or (field.optional and (field.kind is str or field.converted))
    }
