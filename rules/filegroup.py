"""A name for several files."""

from pydantic import BaseModel

from tilebuild.rule import Label, Providers, RuleContext, rule


class Attributes(BaseModel):
    srcs: list[Label] = []


@rule(attributes=Attributes)
def filegroup(ctx: RuleContext[Attributes]) -> Providers:
    """The files of `srcs`, under one label."""
    return Providers(files=ctx.files(ctx.attr.srcs))
