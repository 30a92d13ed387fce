"""Functions that kernels call beside those of cutile: Python's floor division, tile views with padding,
shims.

A helper is safe only where it is sound for all arguments. A shim declares an operation of Tile IR that the
public functions of cutile 0.5.0 spell wrongly or not at all; each says which. Knows no operation and no
kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

_PADDING_DOC: Mapping[str, str] = {
    "None": "whose elements outside the tensor are undefined",
    "Zero": "whose elements outside the tensor read as zero",
    "NegZero": "whose elements outside the tensor read as negative zero",
    "Nan": "whose elements outside the tensor read as NaN",
    "PosInf": "whose elements outside the tensor read as infinity",
    "NegInf": "whose elements outside the tensor read as negative infinity",
}
_PADDING_NAME: Mapping[str, str] = {
    "None": "",
    "Zero": "_or_zero",
    "NegZero": "_or_neg_zero",
    "Nan": "_or_nan",
    "PosInf": "_or_inf",
    "NegInf": "_or_neg_inf",
}

_FIXED: Mapping[str, str] = {
    "floor_mod": """
/// `a % b` of Python: the result has the sign of `b`.
fn floor_mod(a: i32, b: i32) -> i32 {
    let zero: Tile<i32, { [] }> = scalar_to_tile(0i32);
    let divisor: Tile<i32, { [] }> = scalar_to_tile(b);
    let remainder: Tile<i32, { [] }> = scalar_to_tile(a % b);
    let signs_differ = xori(
        cmpi(remainder, zero, predicate::LessThan),
        cmpi(divisor, zero, predicate::LessThan),
    );
    let adjust = andi(signs_differ, cmpi(remainder, zero, predicate::NotEqual));
    tile_to_scalar(select(adjust, remainder + divisor, remainder))
}
""",
}


class Helpers:
    """The helpers that one file uses, each once, by name."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def texts(self) -> list[str]:
        """The helpers in alphabetical order of their names, shims last."""
        ordered = sorted(self._texts.items(), key=lambda item: ("cuda_tile::op" in item[1], item[0]))
        return [text for _, text in ordered]

    def names(self) -> set[str]:
        return set(self._texts)

    def items(self) -> list[tuple[str, str]]:
        return list(self._texts.items())

    def merge(self, other: Helpers) -> None:
        self._texts |= other._texts

    def add(self, name: str, text: str) -> str:
        known = self._texts.setdefault(name, text.strip("\n"))
        assert known == text.strip("\n"), f"two helpers are called {name}"
        return name

    def use(self, name: str) -> str:
        return self.add(name, _FIXED[name])

    def tiles(self, rank: int, padding: str) -> str:
        """A function that makes a tile view with this padding; its name."""
        name = f"tiles_{rank}d{_PADDING_NAME[padding]}"
        return self.add(
            name,
            f"""
/// Tiles of `tensor` {_PADDING_DOC[padding]}.
fn {name}<'a, E: ElementType, const S: [i32; {rank}], const T: [i32; {rank}]>(
    tensor: &'a Tensor<E, S>,
    tile: Shape<T>,
) -> Partition<'a, E, T> {{
    // SAFETY: the view starts from the tensor's own token and does not outlive the tensor.
    unsafe {{ make_partition_view(tensor, tile, padding::{padding}, dim_map::Identity, tensor.token()) }}
}}
""",
        )

    def load(self, rank: int) -> str:
        """A function that loads a tile with explicit tokens; its name."""
        name = f"load_{rank}d"
        return self.add(
            name,
            f"""
/// Loads a tile after what `token` stands for; also returns the token of the load.
///
/// # Safety
///
/// The token must order the load after every store to the same elements.
unsafe fn {name}<E: ElementType, const T: [i32; {rank}]>(
    tiles: &Partition<'_, E, T>,
    index: [i32; {rank}],
    token: Token,
    tile: Shape<T>,
) -> (Tile<E, T>, Token) {{
    // SAFETY: the caller orders the load; elements outside the tensor are not read.
    let (value, loaded): (Tile<E, T>, Token) = unsafe {{
        load_view_raw(
            tiles,
            index,
            Some(token),
            ordering::Weak,
            scope::TileBlock,
            tma::Enabled,
            None,
            [{", ".join(["false"] * rank)}],
            tile,
        )
    }};
    (value, loaded)
}}
""",
        )

    def store(self, rank: int) -> str:
        """A function that stores a tile with explicit tokens; its name."""
        name = f"store_{rank}d"
        return self.add(
            name,
            f"""
/// Stores a tile after what `token` stands for; returns the token of the store.
///
/// # Safety
///
/// The token must order the store after every other access to the same elements, and no other block
/// may access them.
unsafe fn {name}<E: ElementType, const T: [i32; {rank}]>(
    tiles: &Partition<'_, E, T>,
    value: Tile<E, T>,
    index: [i32; {rank}],
    token: Token,
) -> Token {{
    // SAFETY: the caller orders the store; elements outside the tensor are not written.
    unsafe {{
        store_view_raw(
            tiles,
            value,
            index,
            Some(token),
            ordering::Weak,
            scope::TileBlock,
            tma::Enabled,
            None,
            [{", ".join(["false"] * rank)}],
        )
    }}
}}
""",
        )

    def strides(self, rank: int, strides: str, name: str) -> str:
        """A function that gives the run-time strides of a tensor of any lengths; its name."""
        return self.add(
            name,
            f"""
/// The strides of a tensor that are known only at run time.
#[cuda_tile::compiler_op(name = "return_type_meta_field", type_meta_field = "strides")]
pub fn {name}<'s, Element: ElementType, const S: [i32; {rank}]>(
    _tensor: &Tensor<Element, S>,
) -> Shape<'s, {strides}> {{
    unreachable!()
}}
""",
        )

    def scalar(
        self, name: str, doc: str, body: str, operands: tuple[str, ...], result: str, reason: str = ""
    ) -> str:
        """A function on scalars around one on tiles; `body` names its arguments `x`, `y` and `z`. Returns
        its name.

        It is written for these element types alone: a generic one does not get past cutile's type
        inference.
        """
        letters = "xyz"[: len(operands)]
        parameters = ", ".join(f"{p}: {t}" for p, t in zip(letters, operands, strict=True))
        lets = "".join(
            f"    let {p}: Tile<{t}, {{ [] }}> = scalar_to_tile({p});\n"
            for p, t in zip(letters, operands, strict=True)
        )
        safety = f"    // SAFETY: {reason}\n" if reason else ""
        return self.add(
            name,
            f"""
/// {doc}
fn {name}({parameters}) -> {result} {{
{lets}{safety}    let result: Tile<{result}, {{ [] }}> = {body};
    tile_to_scalar(result)
}}
""",
        )

    def plain_number(self, text: str, element: str) -> str:
        """A function that gives a number about which the compiler is told nothing; its name."""
        name = f"plain_{text.replace('-', 'minus_')}" + ("" if element == "i32" else f"_{element}")
        return self.add(
            name,
            f"""
/// {text}, as a value of which the compiler knows nothing: a loop bound that bounds no assumption.
fn {name}() -> {element} {{
    let value: Tile<{element}, {{ [] }}> = constant({text}{element}, shape![]);
    tile_to_scalar(value)
}}
""",
        )

    def floor_div(self, element: str) -> str:
        name = "floor_div" if element == "i32" else f"floor_div_{element}"
        doc = "`a // b` of Python: rounds toward negative infinity."
        return self.scalar(name, doc, "divi(x, y, rounding::NegativeInf)", (element, element), element)
