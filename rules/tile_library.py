"""Python modules with helpers that kernels import."""

from pydantic import BaseModel

from tilebuild.providers import Library
from tilebuild.rule import Artifact, Label, Providers, RuleContext, rule


class Attributes(BaseModel):
    srcs: list[Label] = []
    deps: list[Label] = []
    data: list[Label] = []
    imports: str = (
        ""  # folder of the package (`.` for the package itself) in which imports begin; by default the root
    )


@rule(attributes=Attributes)
def tile_library(ctx: RuleContext[Attributes]) -> Providers:
    """Modules by their import path: that of the file in the workspace, less the folder `imports`.

    A kernel file sees the modules of its `deps` and of theirs; every other module is a stand-in while it is
    imported. What they read meanwhile is `data`, by its path in the workspace.
    """
    own = ctx.files(ctx.attr.srcs)
    files = {_import_path(ctx, file): file for file in own}
    files |= {file.path: file for file in ctx.files(ctx.attr.data)}
    for dep in ctx.attr.deps:
        for path, file in ctx.provider(dep, Library).files.items():
            if files.setdefault(path, file) != file:
                ctx.fail(
                    f"two modules have the import path '{path}': {files[path]} and {file}", "deps", label=dep
                )
    return Providers(files=own, Library=Library(files))


def _import_path(ctx: RuleContext[Attributes], file: Artifact) -> str:
    """By which path a kernel imports the file."""
    if not file.path.endswith(".py"):
        ctx.fail(f"{file} is no Python file", "srcs")
    if file.location:  # external/<distribution>/<path as installed>
        return file.path.split("/", 2)[2]
    if not ctx.attr.imports:
        return file.path
    root = "/".join(part for part in (ctx.label.package, ctx.attr.imports) if part not in ("", ".")) + "/"
    if not file.path.startswith(root):
        ctx.fail(f"{file} does not lie in '{root}'", "imports")
    return file.path.removeprefix(root)
