"""Files made by a shell command."""

import re
from collections.abc import Sequence

from pydantic import BaseModel, Field

from tilebuild.label import LabelError
from tilebuild.rule import Artifact, Label, Output, Providers, RuleContext, rule

_VARIABLE = re.compile(r"\$(\$|@|<|\((?P<name>[^()]*)\)|(?P<other>.)|$)", re.DOTALL)


class Attributes(BaseModel):
    outs: list[Output] = Field(min_length=1)
    cmd: str
    srcs: list[Label] = []


@rule(attributes=Attributes)
def genrule(ctx: RuleContext[Attributes]) -> Providers:
    """Runs `cmd` with /bin/sh.

    In it stand `$(SRCS)` and `$(OUTS)` for all files, `$<` and `$@` for the only one, `$(location x)` for the
    file of a label of `srcs` or `outs`, `$(locations x)` for all of its files, and `$$` for a dollar sign.
    """
    inputs = ctx.files(ctx.attr.srcs)
    outputs = [ctx.declare_output(out.name) for out in ctx.attr.outs]
    command = _expand(ctx, inputs, outputs)
    ctx.action("Genrule", argv=[ctx.tool("sh"), "-e", "-c", command], inputs=inputs, outputs=outputs)
    return Providers(files=outputs)


def _expand(ctx: RuleContext[Attributes], inputs: Sequence[Artifact], outputs: Sequence[Artifact]) -> str:
    def value(match: re.Match[str]) -> str:
        sign = match.group(1)
        name = match.group("name")
        if sign == "$":
            return "$"
        if sign == "@":
            return _only(ctx, "$@", "outs", outputs)
        if sign == "<":
            return _only(ctx, "$<", "srcs", inputs)
        if name == "SRCS":
            return _joined(inputs)
        if name == "OUTS":
            return _joined(outputs)
        word, _, label = (name or "").partition(" ")
        if word in ("location", "locations"):
            return _location(ctx, label.strip(), outputs, single=word == "location")
        return ctx.fail(
            f"unknown variable '{match.group()}' in cmd", "cmd", help="write $$ for a dollar sign"
        )

    return _VARIABLE.sub(value, ctx.attr.cmd)


def _location(ctx: RuleContext[Attributes], text: str, outputs: Sequence[Artifact], *, single: bool) -> str:
    try:
        label = Label.parse(text, ctx.label.package)
    except LabelError as error:
        ctx.fail(error.fact, "cmd", help=error.help)
    files = [artifact for out, artifact in zip(ctx.attr.outs, outputs, strict=True) if out == label]
    if label in ctx.attr.srcs:
        files = list(ctx.files(label))
    if not files:
        names = [
            spelling
            for known in (*ctx.attr.srcs, *ctx.attr.outs)
            for spelling in known.spellings(ctx.label.package)
        ]
        ctx.fail(f"$(location {text}) is neither in srcs nor in outs", "cmd", help=ctx.suggest(text, names))
    if single and len(files) != 1:
        ctx.fail(
            f"$(location {text}) stands for {len(files)} files", "cmd", help=f"write $(locations {text})"
        )
    return _joined(files)


def _only(ctx: RuleContext[Attributes], variable: str, attribute: str, files: Sequence[Artifact]) -> str:
    if len(files) != 1:
        ctx.fail(f"{variable} needs exactly one file in {attribute}, but there are {len(files)}", "cmd")
    return _joined(files)


def _joined(files: Sequence[Artifact]) -> str:
    return " ".join(_quoted(file.path) for file in files)


def _quoted(path: str) -> str:
    return path if re.fullmatch(r"[\w./+=@,-]+", path) else "'" + path.replace("'", "'\"'\"'") + "'"
