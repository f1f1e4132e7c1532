"""Values that the runtime gives the platform's SDK, and our own bundles give the same way."""

from typing import Any

from pyodide.ffi import JsPromise

def doAnImport(name: str, /) -> JsPromise[Any]: ...
