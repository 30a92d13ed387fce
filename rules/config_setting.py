"""A condition on the settings, for the branches of a select."""

from pydantic import BaseModel

from tilebuild.rule import Providers, RuleContext, rule


class Attributes(BaseModel):
    values: dict[str, str]


@rule(attributes=Attributes)
def config_setting(ctx: RuleContext[Attributes]) -> Providers:
    """Holds when each setting has the value given, or, if it is a list, contains it.

    Loading decides; nothing is built.
    """
    return Providers()
