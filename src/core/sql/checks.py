"""The CHECKs in the text that made a table."""

from __future__ import annotations

from core.statements.tokens import Token, text_of, tokens_of


def checks_of(sql: str) -> list[Token]:
    """The tokens inside the CHECKs of a table."""
    found: list[Token] = []
    depth = 0
    inside = False
    for token in tokens_of(sql) if "CHECK" in sql.upper() else ():
        inside = inside or (token.word == "CHECK")
        depth += {"(": 1, ")": -1}.get(token.text, 0) if inside else 0
        inside = inside and (depth > 0 or token.word == "CHECK")
        found += [token] if depth else []
    return found


def allowed_by(sql: str) -> dict[str, tuple[str, ...]]:
    """The texts that a CHECK of nothing but `name IN ('a', 'b')` allows, by the column; none where texts may be equal
    that are written otherwise.
    """
    found: dict[str, tuple[str, ...]] = {}
    tokens = tokens_of(sql)
    if any(token.word == "COLLATE" for token in tokens):
        return found
    for at, token in enumerate(tokens):
        if token.word == "CHECK" and [one.text.upper() for one in tokens[at + 1 : at + 5 : 2]] == ["(", "IN"]:
            end = next((place for place in range(at + 5, len(tokens)) if tokens[place].text == ")"), len(tokens))
            inside = tokens[at + 5 : end]
            texts = [one.text for one in inside[::2] if one.kind == "string" and one.text[0] == "'"]
            alone = tokens[at + 4].text == "(" and [one.text for one in tokens[end : end + 2]] == [")", ")"]
            if alone and len(texts) == len(inside[::2]) and all(one.text == "," for one in inside[1::2]):
                found[(tokens[at + 2].name or "").lower()] = tuple(text_of(one) for one in texts)
    return found
