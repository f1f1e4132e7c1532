"""Tracing of requests and bindings, metrics, and logs as JSON."""
