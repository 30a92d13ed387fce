"""Files of an installed Python distribution.

Knows the installation of the running Python and no BUILD file.
"""

from __future__ import annotations

from importlib.metadata import Distribution as Installed
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tilebuild.action import Artifact
from tilebuild.loading import globs
from tilebuild.rule import Distribution


class DistributionError(Exception):
    """A distribution cannot be used, and what to do."""

    def __init__(self, fact: str, help: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.help = help


def find(wanted: Distribution) -> tuple[dict[str, Artifact], str]:
    """The wanted files by their path as installed, and the absolute path of the list they were taken from.

    Raises DistributionError and GlobError.
    """
    try:
        installed = distribution(wanted.name)
    except PackageNotFoundError:
        requirement = f"{wanted.name}=={wanted.version}" if wanted.version else wanted.name
        raise DistributionError(
            f"the Python distribution '{wanted.name}' is not installed", f"pip install {requirement}"
        ) from None
    if wanted.version and installed.version != wanted.version:
        raise DistributionError(
            f"the Python distribution '{wanted.name}' is installed in version {installed.version},"
            f" not {wanted.version}",
            f"pip install {wanted.name}=={wanted.version}",
        )
    record = _record(installed)
    found = {}
    for file in installed.files or ():
        path = file.as_posix()
        if not path.startswith("..") and globs.matches(path, wanted.include, wanted.exclude):
            location = str(Path(str(installed.locate_file(file))).resolve())
            found[path] = Artifact(f"external/{wanted.name}/{path}", source=True, location=location)
    if not found:
        raise DistributionError(
            f"the Python distribution '{wanted.name}' has no file that matches {list(wanted.include)}"
        )
    return dict(sorted(found.items())), record


def _record(installed: Installed) -> str:
    """The file that lists the installed files; it changes whenever the distribution does."""
    for file in installed.files or ():
        if file.name == "RECORD":
            return str(installed.locate_file(file))
    raise DistributionError(
        f"the installation of '{installed.metadata['Name']}' does not list its files",
        "install it from a wheel, not as an egg or a link",
    )
