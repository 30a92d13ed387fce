"""A name for several tests."""

from pydantic import BaseModel

from tilebuild.rule import Label, Providers, RuleContext, rule


class Attributes(BaseModel):
    tests: list[Label] = []


@rule(attributes=Attributes)
def test_suite(ctx: RuleContext[Attributes]) -> Providers:
    """Those of `tests`, or all of the package, that have a tag of `tags` and none of its `-negative` ones."""
    return Providers(files=ctx.files(ctx.attr.tests))
