"""A developer's own host: one application over real HTTP, with embedded bindings, explained at every step."""
