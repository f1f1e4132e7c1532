"""Names that are not there: modules whose names are loaded when first asked for must not seem to have every name."""

import core
import core.testing
from core import create_ap  # noqa: F401  # E
from core.hosts.workers import entrypont  # noqa: F401  # E
from core.http import Heders  # noqa: F401  # E
from core.http.json import JSONDecodeEror  # noqa: F401  # E
from core.middleware.rate_limit_stores import RateLimiterObjct  # noqa: F401  # E
from core.testing import Clint  # noqa: F401  # E

core.create_ap  # E
core.testing.Clint  # E
core.http.Heders  # E
