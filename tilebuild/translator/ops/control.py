"""Loops, branches and jumps. What a loop carries becomes mutable variables, what a branch yields a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilebuild.tileir import tree as ir
from tilebuild.translator.emitter import Attributes, Emitter, LoopContext, Row
from tilebuild.translator.ops.shapes import zero
from tilebuild.translator.refusal import Refusal
from tilebuild.translator.rust.tree import (
    Assign,
    Block,
    Call,
    Cast,
    Expr,
    For,
    If,
    IfValue,
    Jump,
    Let,
    Local,
    Loop,
    Number,
    Var,
    subexpressions,
)


def for_(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    if attributes.flag("unsigned"):
        raise Refusal(
            "a loop over unsigned numbers has no Rust form in cutile 0.5.0",
            "make the bounds int32 or int64, with astype",
        )
    body = op.regions[0]
    induction, *arguments = body.arguments
    carried = _carry(e, op, arguments)
    bounds = [e.value(op.group(g)[0]) for g in ("lower", "upper", "step")]
    start, stop, step = _range(e, bounds, e.element(induction))
    local = e.local(induction, "i") if induction in e.uses else None
    context = LoopContext("for", carried, carried)
    with e.inside() as block, e.loop(context):
        if local is not None:
            e.bind(induction, Var(local))
        e.operations(body.operations)
    e.emit(For(local, start, stop, step, block))
    for argument, result in zip(arguments, op.results, strict=True):
        e.bind(result, e.value(argument))


def _range(e: Emitter, bounds: Sequence[Expr], element: str) -> tuple[Expr, Expr, Expr | None]:
    start, stop, step = bounds
    if e.rung.plain_loops:
        start, stop = (_plain(e, b) for b in (start, stop))
    if isinstance(step, Number) and step.text == "1":
        # The implicit step is an i32, so that loops over i64 name theirs.
        return start, stop, None if element == "i32" else Number("1", "")
    if isinstance(step, Number):
        return start, stop, Number(step.text, "")
    if element != "i32":
        raise Refusal(
            f"a loop over {element} with a step known only at run time has no Rust form in cutile 0.5.0",
            "make the step a ct.Constant, or the loop bounds int32",
        )
    return start, stop, Cast(step, "usize")


def _plain(e: Emitter, bound: Expr) -> Expr:
    """A bound about which the compiler is told nothing, so that it assumes none of the loop's variable."""
    if not isinstance(bound, Number):
        return bound
    return Call(e.helpers.plain_number(bound.text, bound.suffix), ())


def _carry(e: Emitter, op: ir.Operation, arguments: Sequence[ir.Value]) -> tuple[Local | None, ...]:
    """A mutable variable for each carried value; tokens that stand for the start of the kernel need none."""
    found: list[Local | None] = []
    for argument, initial in zip(arguments, op.group("init"), strict=True):
        if argument in e.root_tokens:
            e.bind(argument, e.root_token())
            found.append(None)
            continue
        local = e.local(argument, "carried")
        e.emit(Let(local, e.rust_type(argument), e.value(initial), mutable=True))
        e.bind(argument, Var(local))
        found.append(local)
    return tuple(found)


def loop(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    body = op.regions[0]
    carried = _carry(e, op, body.arguments)
    results = _loop_results(e, op, body, carried)
    with e.inside() as block, e.loop(LoopContext("loop", carried, tuple(own for own, _ in results))):
        e.operations(body.operations)
    e.emit(Loop(block))
    for result, (_, expression) in zip(op.results, results, strict=True):
        e.bind(result, expression)


def _loop_results(
    e: Emitter, op: ir.Operation, body: ir.Block, carried: tuple[Local | None, ...]
) -> list[tuple[Local | None, Expr]]:
    """For each result a variable of its own, if any, and what stands for it after the loop."""
    breaks = [j for j in jumps(body.operations) if j.name == "break"]
    found: list[tuple[Local | None, Expr]] = []
    for index, result in enumerate(op.results):
        sources = {j.operands[index] for j in breaks}
        if result in e.root_tokens:
            found.append((None, e.root_token()))
        elif len(sources) == 1 and sources <= set(body.arguments):
            found.append((None, e.value(sources.pop())))
        else:
            local = e.local(result, "result")
            e.emit(Let(local, e.rust_type(result), zero(e, result), mutable=True, unread=True))
            found.append((local, Var(local)))
    return found


def jumps(operations: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The `continue` and `break` operations of one loop body, those inside its branches included."""
    found = []
    for operation in operations:
        if operation.name in ("continue", "break"):
            found.append(operation)
        elif operation.name == "if":
            found += [j for region in operation.regions for j in jumps(region.operations)]
    return found


# --- jumps ----------------------------------------------------------------------------------------


def continue_(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    context = e.loops[-1]
    _assign(e, context.carried, op.operands)
    # In a branch the word is needed; at the end of the body it is what happens anyway.
    if len(e.scopes) > e.loop_depths[-1]:
        e.emit(Jump("continue"))


def break_(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    _assign(e, e.loops[-1].results, op.operands)
    e.emit(Jump("break"))


def return_(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    if e.loops:
        if any(c.kind == "for" for c in e.loops):
            raise Refusal(
                "a return inside a `for` loop has no Rust form in cutile 0.5.0",
                "leave the loop with `break` and return behind it, or write it as a `while` loop",
            )
        e.emit(Jump("return"))


def _assign(e: Emitter, targets: Sequence[Local | None], values: Sequence[ir.Value]) -> None:
    """All assignments at once, as far as one can tell: a value that an earlier one would change is read
    first."""
    pairs = [
        (target, e.value(value), value)
        for target, value in zip(targets, values, strict=True)
        if target is not None and e.value(value) != Var(target)
    ]
    assigned: set[Local] = set()
    ready: list[tuple[Local, Expr]] = []
    for target, expression, value in pairs:
        if any(isinstance(p, Var) and p.local in assigned for p in subexpressions(expression)):
            expression = e.saved(value, expression, ready)
        ready.append((target, expression))
        assigned.add(target)
    for target, expression in ready:
        e.emit(Assign(target, expression))


# --- branches -------------------------------------------------------------------------------------


def if_(e: Emitter, op: ir.Operation, attributes: Attributes) -> None:
    condition = e.value(op.operands[0])
    regions = list(op.regions)
    ends = [r.operations[-1] if r.operations else None for r in regions]
    results = [r for r in op.results if r not in e.root_tokens]
    for result in op.results:
        if result in e.root_tokens:
            e.bind(result, e.root_token())
    if any(end is not None and end.name == "return" for end in ends) and not e.loops:
        raise AssertionError("an early return is printed by the block that holds it")
    if not results:
        blocks = [_branch(e, region) for region in regions]
        e.emit(If(condition, blocks[0], blocks[1] if len(blocks) > 1 else []))
        return
    if len(results) == 1 and all(end is not None and end.name == "yield" for end in ends):
        _value(e, op, condition, results[0])
    else:
        _values(e, op, condition, results)


def _branch(e: Emitter, region: ir.Block) -> Block:
    with e.inside() as block:
        for operation in region.operations:
            if operation.name != "yield":
                e.operation(operation)
    return block


def _value(e: Emitter, op: ir.Operation, condition: Expr, result: ir.Value) -> None:
    """`let x = if c { … } else { … };`"""
    index = op.results.index(result)
    then = _branch(e, op.regions[0])
    otherwise = _branch(e, op.regions[1])
    values = [e.value(r.operations[-1].operands[index]) for r in op.regions]
    e.let(result, IfValue(condition, then, values[0], otherwise, values[1]), "chosen")


def _values(e: Emitter, op: ir.Operation, condition: Expr, results: list[ir.Value]) -> None:
    """Variables that the branches assign, those that do not leave a loop."""
    kept: set[ir.Value] = set()
    locals_ = [e.local(r, "chosen") for r in results]
    otherwise = _yielded(op, op.regions[1])
    for result, local in zip(results, locals_, strict=True):
        known = otherwise.get(result)
        # A value from before the branch is what the variable keeps; else it needs one that nobody reads.
        before = known is not None and e.is_bound(known)
        initial = e.value(known) if known is not None and before else zero(e, result)
        e.emit(Let(local, e.rust_type(result), initial, mutable=True, unread=not before))
        if before:
            kept.add(result)
    blocks: list[Block] = []
    for region in op.regions:
        yielded = _yielded(op, region)
        if not yielded:
            blocks.append(_branch(e, region))
            continue
        with e.inside() as block:
            for operation in region.operations[:-1]:
                e.operation(operation)
            last = region is op.regions[1]
            targets = [None if last and r in kept else x for r, x in zip(results, locals_, strict=True)]
            _assign(e, targets, [yielded[r] for r in results])
        blocks.append(block)
    e.emit(If(condition, blocks[0], blocks[1]))
    for result, local in zip(results, locals_, strict=True):
        e.bind(result, Var(local))


def _yielded(op: ir.Operation, region: ir.Block) -> dict[ir.Value, ir.Value]:
    """What a branch gives for each result; nothing if it leaves a loop."""
    end = region.operations[-1]
    return dict(zip(op.results, end.operands, strict=True)) if end.name == "yield" else {}


ROWS: Mapping[str, Row] = {
    "for": for_,
    "loop": loop,
    "if": if_,
    "continue": continue_,
    "break": break_,
    "return": return_,
}
