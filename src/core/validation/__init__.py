"""JSON, query strings and rows into types."""
