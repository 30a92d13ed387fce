"""Files of an installed Python distribution, as sources."""

from pydantic import BaseModel

from tilebuild.providers import Library
from tilebuild.rule import Distribution, Providers, RuleContext, rule


class Attributes(BaseModel):
    distribution: str
    version: str = ""
    include: list[str] = ["**/*.py"]
    exclude: list[str] = []


def _distribution(attributes: Attributes) -> Distribution:
    return Distribution(
        attributes.distribution, tuple(attributes.include), tuple(attributes.exclude), attributes.version
    )


@rule(attributes=Attributes, distribution=_distribution)
def python_package(ctx: RuleContext[Attributes]) -> Providers:
    """The files of `distribution` that match `include` and not `exclude`; `version` must be installed.

    Each file is also a label of its own in the package of this target, under the path by which it is
    imported: `//third_party:tilegym/ops/cutile/softmax.py`.
    """
    prefix = f"external/{ctx.attr.distribution}/"
    return Providers(
        files=ctx.external, Library=Library({file.path.removeprefix(prefix): file for file in ctx.external})
    )
