"""A collector of OpenTelemetry: what processes send it over OTLP, as spans and as trees."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["Collector"]


class Collector:
    """A collector for OTLP over HTTP, in this process."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                request = ExportTraceServiceRequest.FromString(body)
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def tree(self, trace: bytes) -> str:
        """The spans of a trace: a line for each, indented below its parent, in the order they began."""
        spans = sorted(
            (span for span in self.spans if span.trace_id == trace), key=lambda span: span.start_time_unix_nano
        )
        known = {span.span_id for span in spans}

        def lines(parent: bytes | None, depth: int) -> list[str]:
            found = [
                span
                for span in spans
                if (span.parent_span_id == parent if parent else span.parent_span_id not in known)
            ]
            return [line for span in found for line in ("  " * depth + span.name, *lines(span.span_id, depth + 1))]

        return "\n".join(lines(None, 0))
