"""The embedded SQL database: the platform's semantics over one SQLite database of its own."""

from core.backends.embedded.d1.database import EmbeddedD1Database as EmbeddedD1Database
from core.backends.embedded.d1.database import EmbeddedD1PreparedStatement as EmbeddedD1PreparedStatement
from core.backends.embedded.d1.database import EmbeddedD1Session as EmbeddedD1Session
from core.backends.embedded.d1.engine import Engine as Engine
from core.backends.embedded.d1.engine import drop_all as drop_all
from core.backends.embedded.d1.engine import engine_of as engine_of
from core.backends.embedded.d1.values import Refused as Refused
