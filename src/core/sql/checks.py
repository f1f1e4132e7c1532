"""The CHECKs in the text that made a table."""

from __future__ import annotations

from core.statements.tokens import Token, enclosed, text_of, tokens_of


def checks_of(sql: str) -> list[Token]:
    """The tokens inside the CHECKs of a table."""
    tokens = tokens_of(sql) if "CHECK" in sql.upper() else []
    return [inside for at, token in enumerate(tokens) if token.word == "CHECK" for inside in enclosed(tokens, at + 1)]


def allowed_by(sql: str) -> dict[str, tuple[str, ...]]:
    """The texts that a CHECK of nothing but `name IN ('a', 'b')` allows, by the column; none where texts may be equal
    that are written otherwise.
    """
    found: dict[str, tuple[str, ...]] = {}
    tokens = tokens_of(sql)
    if any(token.word == "COLLATE" for token in tokens):
        return found
    for at, token in enumerate(tokens):
        check = enclosed(tokens, at + 1) if token.word == "CHECK" else tokens[:0]
        inside = enclosed(check, 2)
        texts = [one.text for one in inside[::2] if one.kind == "string" and one.text[0] == "'"]
        alone = [one.word for one in check[1:2]] == ["IN"] and len(check) == len(inside) + 4
        if alone and len(texts) == len(inside[::2]) and all(one.text == "," for one in inside[1::2]):
            found[(check[0].name or "").lower()] = tuple(text_of(one) for one in texts)
    return found
