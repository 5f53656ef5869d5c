"""docs/verdict.schema.json, made from the fields of a verdict.

Knows: how a type and the sentence below a field become JSON Schema. Refuses to know what a verdict holds: fields,
their types and their sentences stand in `story/verdict.py` and `story/seen.py`.
"""

import ast
import inspect
import json
import types
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from wirecheck.document import HIDDEN, LEFT_OUT, SPREAD
from wirecheck.session.verdict_document import SCHEMA_VERSION
from wirecheck.story import verdict
from wirecheck.wording import TIMES

SCHEMA = Path(__file__).resolve().parent.parent / "docs" / "verdict.schema.json"
PLAIN = {str: "string", int: "integer", bool: "boolean", float: "number"}
IN_A_REPLAY = {"next", "commands"}
"""Fields that other documents leave out, and a replay's JSON never does."""
NARROWER: dict[tuple[str, str], dict[str, Any]] = {
    ("Finding", "code"): {"pattern": "^[A-Z]{3}[0-9]{3}$"},
    ("Finding", "count"): {"minimum": 1},
    ("About", "schema_version"): {"const": SCHEMA_VERSION},
}
"""What a type cannot say."""


def page() -> str:
    """The whole schema."""
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "wirecheck replay --format json",
        **schema_of(verdict.Verdict),
    }
    inner = kinds(verdict.Verdict) - {verdict.Verdict, verdict.About}
    made["$defs"] = {kind.__name__: schema_of(kind) for kind in sorted(inner, key=lambda kind: kind.__name__)}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def kinds(*left_to_see: Any) -> set[type]:
    """These, and those inside them."""
    found: set[type] = set()
    left = list(left_to_see)
    while left:
        one = left.pop()
        if isinstance(one, type) and is_dataclass(one) and one not in found:
            found.add(one)
            left += get_type_hints(one).values()
        left += get_args(one)
    return found


def reference(kind: type) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{kind.__name__}"}


def schema_of(kind: type) -> dict[str, Any]:
    """An object with these fields; one that may be left out is not required."""
    shown = list(spread(kind))
    return {
        "description": inspect.getdoc(kind),
        "type": "object",
        **({"additionalProperties": False} if kind in kinds(verdict.Card) else {}),
        "required": [json_name(one) for _, one in shown if LEFT_OUT not in one.metadata or one.name in IN_A_REPLAY],
        "properties": {
            json_name(one): {
                **of_field(one, get_type_hints(of)[one.name]),
                **NARROWER.get((of.__name__, one.name), {}),
                **described(sentences_of(of).get(one.name)),
            }
            for of, one in shown
        },
    }


def spread(kind: type) -> Iterator[tuple[type, Field[Any]]]:
    """The fields of an object, each with its class; those of a value that is spread stand in its place."""
    for one in fields(kind):  # type: ignore[arg-type]
        if one.metadata == SPREAD:
            for inner in get_args(get_type_hints(kind)[one.name]):
                yield from spread(inner) if is_dataclass(inner) else ()  # type: ignore[arg-type]
        elif one.metadata != HIDDEN:
            yield kind, one


def described(sentence: str | None) -> dict[str, str]:
    return {"description": sentence} if sentence else {}


def json_name(one: Field[Any]) -> str:
    return TIMES.get(one.name, one.name)


def of_field(one: Field[Any], hint: Any) -> dict[str, Any]:
    if one.name in TIMES:
        null = type(None) in get_args(hint)
        return {"type": ["string", "null"] if null else "string", "format": "date-time"}
    return of_type(hint)


def of_type(hint: Any) -> dict[str, Any]:
    if hint in PLAIN:
        return {"type": PLAIN[hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple and Ellipsis not in arguments:
        return {"type": "array", "prefixItems": list(map(of_type, arguments))}
    if origin is tuple:
        return {"type": "array", "items": of_type(arguments[0])}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in {Union, types.UnionType}:
        (other,) = (one for one in arguments if one is not type(None))
        made = of_type(other)
        return {"type": [made["type"], "null"]} if made.keys() == {"type"} else {"anyOf": [made, {"type": "null"}]}
    if is_dataclass(hint):
        return reference(hint)  # type: ignore[arg-type]
    return {"type": "object", "additionalProperties": of_type(arguments[1])}


def sentences_of(kind: type) -> dict[str, str]:
    """The text below each field, also of those that it has from another class."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        (source,) = ast.parse(inspect.getsource(base)).body
        for field, text in pairwise(source.body if isinstance(source, ast.ClassDef) else ()):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                sentence = inspect.cleandoc(str(ast.literal_eval(text.value)))
                found[field.target.id] = sentence.replace("\n", " ").replace("None", "null")
    return found
