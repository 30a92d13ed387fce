"""Rust functions for memory that is accessed by pointer: addresses, gathers, scatters. Texts only; knows no
operation.

They are generic over element type and shape; each rank has its own, because cutile functions are not
generic over it.
"""

from __future__ import annotations

from tilebuild.translator.helpers import Helpers


def pointers(helpers: Helpers, rank: int) -> str:
    """A function that gives the addresses at offsets from one pointer; its name."""
    name = f"pointers_{rank}d"
    ones = ", ".join(["1"] * rank)
    return helpers.add(
        name,
        f"""
/// The addresses `base + offsets`, counted in elements.
fn {name}<Element: ElementType, Index: ElementType, const S: [i32; {rank}]>(
    base: PointerTile<*mut Element, {{ [] }}>,
    offsets: Tile<Index, S>,
    shape: Shape<S>,
) -> PointerTile<*mut Element, S> {{
    let base: PointerTile<*mut Element, {{ [{ones}] }}> = base.reshape(shape![{ones}]);
    let spread: PointerTile<*mut Element, S> = base.broadcast(shape);
    let pointers: PointerTile<*mut Element, S> = spread.offset_tile(offsets);
    pointers
}}
""",
    )


def padded_load(helpers: Helpers, rank: int) -> str:
    """A shim of the load whose padding is a tile; its name."""
    name = f"load_padded_{rank}d"
    return helpers.add(
        name,
        f"""
/// `load_ptr_tko` with a tile as padding: in cutile 0.5.0 it can only be a number, and only up to rank 1.
#[allow(unused_variables)]
#[cuda_tile::op(name = "cuda_tile.load_ptr_tko", params = ["source"])]
pub unsafe fn {name}<
    Element: ElementType,
    const S: [i32; {rank}],
    O: ordering::LoadMode,
    Sc: scope::Mode,
    const CYCLES: i32,
>(
    source: PointerTile<*mut Element, S>,
    memory_ordering: O,
    memory_scope: Option<Sc>,
    mask: Option<Tile<bool, S>>,
    padding_value: Option<Tile<Element, S>>,
    token: Option<Token>,
    latency: Latency<CYCLES>,
) -> (Tile<Element, S>, Token) {{
    unreachable!()
}}
""",
    )


def gather(helpers: Helpers, rank: int, *, ordered: bool) -> str:
    """A function that loads where a mask holds; `ordered` ones give their token, too. Its name."""
    load = padded_load(helpers, rank)
    name, result, last, loaded, also = f"gather_{rank}d", "Tile<Element, S>", "values", "_", ""
    if ordered:
        name += "_ordered"
        result, last, loaded = "(Tile<Element, S>, Token)", "(values, loaded)", "loaded"
        also = "; also the token of the load"
    return helpers.add(
        name,
        f"""
/// What `pointers` point to where `mask` holds, else `padding`{also}.
///
/// # Safety
///
/// Where the mask holds, the pointers are valid to read, and `token` orders the load after every store there.
unsafe fn {name}<Element: ElementType, const S: [i32; {rank}]>(
    pointers: PointerTile<*mut Element, S>,
    mask: Tile<bool, S>,
    padding: Tile<Element, S>,
    token: Token,
) -> {result} {{
    // SAFETY: as the caller promises.
    let (values, {loaded}): (Tile<Element, S>, Token) = unsafe {{
        {load}(
            pointers,
            ordering::Weak,
            None::<scope::TileBlock>,
            Some(mask),
            Some(padding),
            Some(token),
            Latency::<0>,
        )
    }};
    {last}
}}
""",
    )


def load_at(helpers: Helpers, element: str) -> str:
    """A function that loads one number where a condition holds; its name."""
    load = padded_load(helpers, 0)
    name = f"load_at_{element}"
    kind = f"Tile<{element}, {{ [] }}>"
    return helpers.add(
        name,
        f"""
/// What `pointer` points to if `inside` holds, else `padding`.
///
/// # Safety
///
/// If `inside` holds, the pointer is valid to read, and `token` orders the load after every store there.
unsafe fn {name}(
    pointer: PointerTile<*mut {element}, {{ [] }}>,
    inside: bool,
    padding: {element},
    token: Token,
) -> {element} {{
    let inside: Tile<bool, {{ [] }}> = scalar_to_tile(inside);
    let padding: {kind} = scalar_to_tile(padding);
    // SAFETY: as the caller promises.
    let (value, _): ({kind}, Token) = unsafe {{
        {load}(
            pointer,
            ordering::Weak,
            None::<scope::TileBlock>,
            Some(inside),
            Some(padding),
            Some(token),
            Latency::<0>,
        )
    }};
    tile_to_scalar(value)
}}
""",
    )


def scatter(helpers: Helpers, rank: int) -> str:
    """A function that stores where a mask holds; its name."""
    name = f"scatter_{rank}d"
    return helpers.add(
        name,
        f"""
/// Stores `values` to what `pointers` point to where `mask` holds; returns the token of the store.
///
/// # Safety
///
/// Where the mask holds, the pointers are valid to write, no other block accesses what they point to, and
/// `token` orders the store after every other access there.
unsafe fn {name}<Element: ElementType, const S: [i32; {rank}]>(
    pointers: PointerTile<*mut Element, S>,
    values: Tile<Element, S>,
    mask: Tile<bool, S>,
    token: Token,
) -> Token {{
    // SAFETY: as the caller promises.
    let stored: Token = unsafe {{
        store_ptr_tko(
            pointers,
            values,
            ordering::Weak,
            None::<scope::TileBlock>,
            Some(mask),
            Some(token),
            Latency::<0>,
        )
    }};
    stored
}}
""",
    )
