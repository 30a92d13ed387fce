"""Rust tree -> text, one statement a line; rustfmt breaks the lines. Knows precedence and comments, but no
Tile IR.

Beside the text it says which Python location each line stems from, so that messages find their way back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilebuild.tileir.tree import Location
from tilebuild.translator.rust.tree import (
    ArrayOf,
    Assign,
    Binary,
    Block,
    Call,
    Cast,
    Comment,
    Descriptor,
    Do,
    Expr,
    For,
    Function,
    If,
    IfValue,
    Jump,
    Let,
    LetTuple,
    Loop,
    Macro,
    Member,
    Method,
    Number,
    Path,
    Reference,
    Statement,
    TupleOf,
    Unsafe,
    Var,
    While,
    expressions,
    subexpressions,
)

#: Binding strength of the binary operators; a cast binds tighter, everything else tightest.
_STRENGTH = {
    **dict.fromkeys(("*", "/", "%"), 9),
    **dict.fromkeys(("+", "-"), 8),
    **dict.fromkeys(("<<", ">>"), 7),
    "&": 6,
    "^": 5,
    "|": 4,
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 3),
}
_CAST = 10
_ATOM = 11
_COMPARISON = 3
_INDENT = "    "


@dataclass
class Text:
    """Lines with their origin; `None` for lines that no Python line caused."""

    lines: list[str] = field(default_factory=list)
    origins: list[Location | None] = field(default_factory=list)

    def add(self, line: str, origin: Location | None = None) -> None:
        self.lines.append(line)
        self.origins.append(origin)

    def extend(self, other: Text) -> None:
        self.lines += other.lines
        self.origins += other.origins


def expression(e: Expr, *, bare: bool = False) -> str:
    """The text of an expression; a bare number goes without its suffix: the context gives its type."""
    match e:
        case Var():
            return e.local.name
        case Path():
            return e.text
        case Number():
            return e.text if bare else e.text + e.suffix
        case Call():
            return f"{e.function}({_list(e.arguments)})"
        case Method():
            arguments = ", ".join(expression(a, bare=isinstance(a, ArrayOf)) for a in e.arguments)
            return f"{_within(e.receiver, _ATOM)}.{e.name}({arguments})"
        case Binary():
            return _binary(e)
        case Member():
            suffix = f"[{e.index}]" if e.bracket else f".{e.index}"
            return _within(e.value, _ATOM) + suffix
        case ArrayOf():
            # Only methods of tile views say what their indices are.
            return f"[{', '.join(expression(i, bare=bare) for i in e.items)}]"
        case TupleOf():
            return f"({_list(e.items)}{',' if len(e.items) == 1 else ''})"
        case Reference():
            return f"&{_within(e.value, _ATOM)}"
        case Cast():
            return f"{_within(e.value, _CAST)} as {e.type}"
        case Unsafe():
            return f"unsafe {{ {expression(e.value)} }}"
        case Descriptor():
            return f"{e.type} {{ dims: &[{_list(e.items)}] }}"
        case IfValue():
            raise AssertionError("an `if` in value form stands alone after `=`")


def _list(items: tuple[Expr, ...]) -> str:
    return ", ".join(expression(i) for i in items)


def _strength(e: Expr) -> int:
    match e:
        case Binary():
            return _STRENGTH[e.operator]
        case Cast():
            return _CAST
        case Number() if e.text.startswith("-"):
            return _CAST
        case _:
            return _ATOM


def _within(e: Expr, least: int) -> str:
    text = expression(e)
    return text if _strength(e) >= least else f"({text})"


def _binary(e: Binary) -> str:
    strength = _STRENGTH[e.operator]
    # Comparisons do not associate in Rust; all other operators do so to the left.
    left = _within(e.left, strength + (strength == _COMPARISON))
    number = isinstance(e.right, Number)
    right = expression(e.right, bare=True) if number else _within(e.right, strength + 1)
    if left.endswith(">") or (e.operator == "<" and isinstance(e.left, Cast)):
        left = f"({left})"
    return f"{left} {e.operator} {right}"


#: The launcher that cutile generates takes no more parameters than this.
_LAUNCHER_LIMIT = 64


def _entry_path(f: Function) -> str:
    """The attribute of an entry. Beyond the launcher's limit one that only the kernel compiler understands:
    it looks at the last word, and rustc leaves every attribute of the tool `rustfmt` alone."""
    return "cutile::entry" if len(f.parameters) <= _LAUNCHER_LIMIT else "rustfmt::entry"


def function(f: Function, indent: str = _INDENT) -> Text:
    """An entry with its documentation and attributes."""
    text = Text()
    for line in f.docs:
        text.add(f"{indent}/// {line}".rstrip())
    if f.unsafe:
        if f.docs:
            text.add(f"{indent}///")
        text.add(f"{indent}/// # Safety")
        text.add(f"{indent}///")
        for line in f.safety:
            text.add(f"{indent}/// {line}".rstrip())
    if f.allows:
        text.add(f"{indent}#[allow({', '.join(f.allows)})]")
    text.add(f"{indent}#[{_entry_path(f)}({', '.join(f.attributes)})]")
    parameters = ", ".join(f"{p.local.name}: {p.type}" for p in f.parameters)
    keyword = "pub unsafe fn" if f.unsafe else "pub fn"
    text.add(f"{indent}{keyword} {f.name}({parameters}) {{")
    text.extend(block(f.body, indent + _INDENT))
    text.add(f"{indent}}}")
    return text


def block(statements: Block, indent: str) -> Text:
    text = Text()
    for statement in statements:
        text.extend(_statement(statement, indent))
    return text


def _statement(s: Statement, indent: str) -> Text:
    text = Text()
    at = s.location
    for reason in _reasons(s):
        text.add(f"{indent}// SAFETY: {reason}", at)
    match s:
        case Let(value=IfValue() as value):
            text.extend(_if_value(f"{indent}let {_pattern(s)} = ", value, indent, at))
        case Let():
            if s.unread:
                text.add(f"{indent}#[allow(unused_assignments)]", at)
            text.add(f"{indent}let {_pattern(s)} = {expression(s.value, bare=True)};", at)
        case LetTuple():
            names = ", ".join(local.name if local else "_" for local in s.locals)
            pattern = f"({names})" if len(s.locals) > 1 else names
            text.add(f"{indent}let {pattern}: {s.type} = {expression(s.value)};", at)
        case Assign(value=IfValue() as value):
            text.extend(_if_value(f"{indent}{s.local.name} = ", value, indent, at))
        case Assign():
            text.add(f"{indent}{s.local.name} = {expression(s.value)};", at)
        case Do():
            text.add(f"{indent}{expression(s.value)};", at)
        case For():
            name = s.local.name if s.local else "_"
            text.add(f"{indent}for {name} in {_range(s)} {{", at)
            text.extend(block(s.body, indent + _INDENT))
            text.add(f"{indent}}}")
        case While():
            text.add(f"{indent}while {expression(s.condition)} {{", at)
            text.extend(block(s.body, indent + _INDENT))
            text.add(f"{indent}}}")
        case Loop():
            text.add(f"{indent}loop {{", at)
            text.extend(block(s.body, indent + _INDENT))
            text.add(f"{indent}}}")
        case If():
            text.extend(_if(s, indent))
        case Jump():
            text.add(f"{indent}{s.word};", at)
        case Macro():
            text.add(f"{indent}{s.name}!({_list(s.arguments)});", at)
        case Comment():
            text.add(f"{indent}// {s.text}".rstrip(), at)
    return text


def _pattern(s: Let) -> str:
    # A type that follows from the value is left out, as a Rust author would.
    kind = "" if s.infers else f": {s.type}"
    return f"{'mut ' if s.mutable else ''}{s.local.name}{kind}"


def _range(s: For) -> str:
    # One bound with its type is enough for the range.
    start = expression(s.start, bare=not isinstance(s.stop, Number))
    stop = expression(s.stop, bare=True)
    if isinstance(s.start, Binary | Cast) or isinstance(s.stop, Cast):
        start, stop = f"({start})", f"({stop})" if isinstance(s.stop, Cast) else stop
    if s.step is None:
        return f"{start}..{stop}"
    return f"({start}..{stop}).step_by({expression(s.step, bare=True)})"


def _if(s: If, indent: str) -> Text:
    text = Text()
    text.add(f"{indent}if {expression(s.condition)} {{", s.location)
    text.extend(block(s.then, indent + _INDENT))
    if s.otherwise:
        text.add(f"{indent}}} else {{")
        text.extend(block(s.otherwise, indent + _INDENT))
    text.add(f"{indent}}}")
    return text


def _if_value(head: str, value: IfValue, indent: str, at: Location | None) -> Text:
    text = Text()
    text.add(f"{head}if {expression(value.condition)} {{", at)
    text.extend(block(value.then, indent + _INDENT))
    text.add(f"{indent}{_INDENT}{expression(value.then_value)}", at)
    text.add(f"{indent}}} else {{")
    text.extend(block(value.otherwise, indent + _INDENT))
    text.add(f"{indent}{_INDENT}{expression(value.otherwise_value)}", at)
    text.add(f"{indent}}};")
    return text


def _reasons(s: Statement) -> list[str]:
    found = [part.reason for e in expressions(s) for part in subexpressions(e) if isinstance(part, Unsafe)]
    return list(dict.fromkeys(found))
