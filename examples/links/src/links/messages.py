"""What the queue carries."""

import attrs


@attrs.frozen
class Click:
    link: int
    slug: str
