"""Another name for a target."""

from pydantic import BaseModel

from tilebuild.rule import Label, Providers, RuleContext, rule


class Attributes(BaseModel):
    actual: Label


@rule(attributes=Attributes)
def alias(ctx: RuleContext[Attributes]) -> Providers:
    """Everything that `actual` provides."""
    return ctx.providers(ctx.attr.actual)
