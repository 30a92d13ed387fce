"""A Tile IR tree as text: one canonical form, for people, diffs and golden files. Knows no compiler and no
file.

The grammar is the disassembler's, so `parse` reads it back to an equal tree. What differs: values are called
by their numbers, attributes with a default are written only where they differ from it, operand types are
written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tilebuild.tileir import floats
from tilebuild.tileir.lexer import escape, spelled_symbol
from tilebuild.tileir.operations import (
    ENDS,
    IMPLIED_END,
    RESULT_TYPE,
    SYNTAX,
    Bracketed,
    Flag,
    Literal,
    Numbers,
    Operand,
    Part,
    Special,
    Syntax,
    Text,
    Word,
)
from tilebuild.tileir.tree import (
    AttributeValue,
    Block,
    Entry,
    Global,
    Operation,
    Scalar,
    TileType,
    TokenType,
    Type,
    Value,
)

#: Operations whose one printed type is that of every result, or of the result and all operands.
_ONE_TYPE = frozenset({"get_tile_block_id", "get_num_tile_blocks"})
_NO_TYPE = frozenset({"memory_fence_alias_tko"})
#: Operations written with an arrow between operand types and result types.
_ARROW = frozenset(
    {
        "atomic_cas_tko",
        "atomic_red_view_tko",
        "atomic_rmw_tko",
        "bitcast",
        "broadcast",
        "cat",
        "cmpf",
        "cmpi",
        "exti",
        "extract",
        "ftof",
        "ftoi",
        "gdc_launch_dependents_tko",
        "gdc_wait_tko",
        "get_index_space_shape",
        "get_tensor_shape",
        "int_to_ptr",
        "itof",
        "load_ptr_tko",
        "load_view_tko",
        "make_tensor_view",
        "offset",
        "pack",
        "permute",
        "print_tko",
        "ptr_to_int",
        "ptr_to_ptr",
        "reshape",
        "store_ptr_tko",
        "store_view_tko",
        "trunci",
        "unpack",
    }
)


def print_entry(entry: Entry) -> str:
    return "\n".join([*map(_global, entry.globals), *_Printer(entry).lines()]) + "\n"


def print_operation(entry: Entry, operation: Operation) -> str:
    """The first line of one operation, as it stands in `print_entry`, without what its regions hold."""
    return next(_Printer(entry).operation(operation, "")).removesuffix(" {")


class _Printer:
    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def lines(self) -> Iterator[str]:
        entry = self._entry
        hints = f" optimization_hints={_hints(entry.hints)}" if entry.hints else ""
        yield f"entry {spelled_symbol(entry.symbol)}({self._declare(entry.parameters)}){hints} {{"
        yield from self._block(entry.body, "", "  ")
        yield "}"

    def operation(self, operation: Operation, indent: str) -> Iterator[str]:
        head = indent + self._results(operation)
        if operation.name in _HEADS:
            yield f"{head}{_HEADS[operation.name](self, operation)} {{"
            for number, region in enumerate(operation.regions):
                if number:
                    yield f"{indent}}} else {{"
                yield from self._block(region, operation.name, indent + "  ")
            yield f"{indent}}}"
            return
        words = [operation.name, *self._words(SYNTAX[operation.name], operation)]
        yield head + _join(words) + self._types(operation)

    def _block(self, block: Block, owner: str, indent: str) -> Iterator[str]:
        for operation in block.operations:
            implied = operation.name == IMPLIED_END.get(owner) and not operation.operands
            if not implied:
                yield from self.operation(operation, indent)

    def _results(self, operation: Operation) -> str:
        names = ", ".join(f"%{r}" for r in operation.results)
        return f"{names} = " if names else ""

    def _declare(self, values: tuple[Value, ...]) -> str:
        return ", ".join(f"%{v}: {self._entry.types[v]}" for v in values)

    def _list(self, values: tuple[Value, ...]) -> str:
        return ", ".join(f"%{v}" for v in values)

    def _type_list(self, values: tuple[Value, ...]) -> str:
        return ", ".join(str(self._entry.types[v]) for v in values)

    # Types behind an operation

    def _types(self, operation: Operation) -> str:
        name, types = operation.name, self._entry.types
        if name in ENDS or name == "assert":
            kinds = self._type_list(operation.operands)
            return f" : {kinds}" if kinds else ""
        if name in _NO_TYPE:
            return ""
        if name in _ONE_TYPE:
            return f" : {types[operation.results[0]]}"
        operands = _distinct(types[v] for v in operation.operands if not isinstance(types[v], TokenType))
        results = self._type_list(operation.results)
        if name in _ARROW:
            return (f" : {', '.join(operands)}" if operands else "") + f" -> {results}"
        # Where the result's type is not the last one, the operands' types follow it.
        return f" : {', '.join([results, *operands[1:]] if name in RESULT_TYPE else [results])}"

    # Syntax elements

    def _words(self, syntax: tuple[Syntax, ...], operation: Operation) -> list[str]:
        words: list[str] = []
        for element in syntax:
            words += self._word(element, operation)
        return words

    def _word(self, element: Syntax, operation: Operation) -> list[str]:
        attributes = operation.attributes
        match element:
            case Literal(text):
                return [text]
            case Operand(group, _):
                return [self._list(operation.group(group))] if operation.group(group) else []
            case Word(attribute, _):
                return [str(attributes[attribute])] if attribute in attributes else []
            case Bracketed(attribute, default):
                word = attributes[attribute]
                return [] if word == default else [f"{attribute}<{word}>"]
            case Flag(attribute):
                return [attribute] if attributes.get(attribute) else []
            case Numbers(attribute, many):
                return [_list(attributes[attribute])[1:-1] if many else str(attributes[attribute])]
            case Text(attribute):
                return [f'"{escape(str(attributes[attribute]))}"']
            case Part(parts):
                return self._words(parts, operation) if _present(parts, operation) else []
            case Special(form, name):
                return _SPECIAL[form](self, operation, name)

    def _hints_form(self, operation: Operation, name: str) -> list[str]:
        hints = operation.attributes.get(name)
        return [f"{name} = {_hints(hints)}"] if isinstance(hints, Mapping) else []

    def _booleans(self, operation: Operation, name: str) -> list[str]:
        flags = operation.attributes.get(name)
        return [f"{name} = {_list(flags)}"] if flags is not None else []

    def _symbol(self, operation: Operation, name: str) -> list[str]:
        return [spelled_symbol(str(operation.attributes[name]))]

    def _constant(self, operation: Operation, _: str) -> list[str]:
        return [_constant(operation.attributes, self._entry.types[operation.results[0]])]

    def _predicate(self, operation: Operation, name: str) -> list[str]:
        a = operation.attributes
        match a[name]:
            case "div_by":
                along = f", every {a['every']} along {a['along']}" if "every" in a else ""
                return [f"div_by<{a['divisor']}{along}>"]
            case "bounded":
                return [f"bounded<{a.get('lower', '?')}, {a.get('upper', '?')}>"]
            case _:
                return [f"same_elements<{_list(a['values'])}>"]

    def _extents(self, operation: Operation, name: str) -> list[str]:
        view = self._entry.types[operation.results[0]]
        dynamic = iter(operation.group(name))
        return [
            f"[{', '.join(str(e) if e is not None else f'%{next(dynamic)}' for e in getattr(view, name))}]"
        ]

    # Heads of operations with regions

    def _for(self, operation: Operation) -> str:
        body = operation.regions[0]
        (low,), (high,), (step,) = (operation.group(g) for g in ("lower", "upper", "step"))
        unsigned = "unsigned " if operation.attributes.get("unsigned") else ""
        index = body.arguments[0]
        text = f"for {unsigned}%{index} in (%{low} to %{high}, step %{step}) : {self._entry.types[index]}"
        if operation.results:
            text += (
                f"{self._carried(operation, body.arguments[1:])} -> ({self._type_list(operation.results)})"
            )
        return text

    def _loop(self, operation: Operation) -> str:
        init = operation.group("init")
        text = "loop" + self._carried(operation, operation.regions[0].arguments)
        if init:
            text += f" : {self._type_list(init)}"
        return text + (f" -> {self._type_list(operation.results)}" if operation.results else "")

    def _carried(self, operation: Operation, arguments: tuple[Value, ...]) -> str:
        pairs = zip(arguments, operation.group("init"), strict=True)
        text = ", ".join(f"%{a} = %{v}" for a, v in pairs)
        return f" iter_values({text})" if text else ""

    def _if(self, operation: Operation) -> str:
        results = f" -> ({self._type_list(operation.results)})" if operation.results else ""
        return f"if {self._list(operation.group('condition'))}{results}"

    def _combine(self, operation: Operation) -> str:
        operands = operation.group("operands")
        a = operation.attributes
        reverse = f" reverse={_number(a['reverse'])}" if "reverse" in a else ""
        identities = ", ".join(self._identities(operation))
        return (
            f"{operation.name} {self._list(operands)} dim={a['dim']}{reverse} identities=[{identities}]"
            f" : {self._type_list(operands)} -> {self._type_list(operation.results)}"
            f" ({self._declare(operation.regions[0].arguments)})"
        )

    def _identities(self, operation: Operation) -> Iterator[str]:
        values, bits = operation.attributes["identities"], operation.attributes["bits"]
        assert isinstance(values, tuple)
        assert isinstance(bits, tuple)
        for operand, value, code in zip(operation.group("operands"), values, bits, strict=True):
            yield _element(_element_name(self._entry.types[operand]), value, code)


_HEADS: Mapping[str, Callable[[_Printer, Operation], str]] = {
    "for": _Printer._for,
    "loop": _Printer._loop,
    "if": _Printer._if,
    "reduce": _Printer._combine,
    "scan": _Printer._combine,
}
_SPECIAL: Mapping[str, Callable[[_Printer, Operation, str], list[str]]] = {
    "hints": _Printer._hints_form,
    "booleans": _Printer._booleans,
    "symbol": _Printer._symbol,
    "predicate": _Printer._predicate,
    "extents": _Printer._extents,
    "constant": _Printer._constant,
}


def _present(parts: tuple[Syntax, ...], operation: Operation) -> bool:
    """An optional part is written if its first operand group is there."""
    first = next(part.group for part in parts if isinstance(part, Operand))
    return bool(operation.group(first))


def _global(constant: Global) -> str:
    words = ["global", "private" if constant.private else "", "constant" if constant.constant else ""]
    words.append(spelled_symbol(constant.symbol))
    if constant.alignment:
        words.append(f"alignment = {constant.alignment}")
    words.append(f"{_constant(constant.content, constant.type)} : {constant.type}")
    return " ".join(word for word in words if word)


def _constant(content: Mapping[str, AttributeValue], kind: Type) -> str:
    element = _element_name(kind)
    value = content["value"]
    return f"<{element}: {_elements(element, value, content.get('bits', value))}>"


def _elements(element: str, value: AttributeValue, bits: AttributeValue) -> str:
    if isinstance(value, tuple) and isinstance(bits, tuple):
        return f"[{', '.join(_elements(element, v, b) for v, b in zip(value, bits, strict=True))}]"
    return _element(element, value, bits)


def _element(element: str, value: AttributeValue, bits: AttributeValue) -> str:
    if floats.is_float(element):
        assert isinstance(bits, int)
        return floats.text_of_bits(bits, element)
    return _number(value)


def _element_name(kind: Type) -> str:
    assert isinstance(kind, TileType)
    assert isinstance(kind.element, Scalar)
    return kind.element.name


def _number(value: AttributeValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list(values: AttributeValue) -> str:
    assert isinstance(values, tuple)
    return f"[{', '.join(map(_number, values))}]"


def _hints(hints: Mapping[str, AttributeValue] | Mapping[str, Mapping[str, int | bool]]) -> str:
    targets = []
    for target, of_target in hints.items():
        assert isinstance(of_target, Mapping)
        targets.append(f"{target} = {{{', '.join(f'{k} = {_number(v)}' for k, v in of_target.items())}}}")
    return f"<{', '.join(targets)}>"


def _distinct(types: Iterator[Type]) -> list[str]:
    """Each type once for a run of equal ones."""
    texts: list[str] = []
    for kind in types:
        if not texts or texts[-1] != str(kind):
            texts.append(str(kind))
    return texts


def _join(words: list[str]) -> str:
    """Words with spaces, as people write them: none before a comma or a bracket that indexes."""
    return " ".join(words).replace(" ,", ",").replace(" [ ", "[").replace(" ]", "]")
