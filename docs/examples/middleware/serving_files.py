"""Files of a directory and objects of a bucket, in whole and in part."""

from pathlib import Path

import attrs

from core import Bindings, R2Bucket, create_app
from core.middleware.static import static


@attrs.frozen
class Env(Bindings):
    MEDIA: R2Bucket


HERE = Path(__file__).parent

# --8<-- [start:app]
app = create_app(Env)
app.use("/source", static(directory=HERE, cache_control="public, max-age=3600"))
app.use("/media", static(bucket="MEDIA", prefix="public/"))
# --8<-- [end:app]
