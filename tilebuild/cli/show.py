"""`show`: what was made of an operator's kernels. Knows what a port consists of, not how it was made."""

from __future__ import annotations

import difflib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from tilebuild.action import Artifact
from tilebuild.cli import options
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError
from tilebuild.providers import Port, PortedInstance, PortedKernel
from tilebuild.rule import Providers

Contents = Mapping[Artifact, bytes]


@dataclass(frozen=True)
class Filter:
    """Which kernels, signatures and architectures; empty means all."""

    kernel: str
    signature: str
    architecture: str

    @property
    def words(self) -> str:
        asked = {"kernel": self.kernel, "signature": self.signature, "arch": self.architecture}
        return " ".join(f"--{name}={value}" for name, value in asked.items() if value) or "anything to show"

    def kernels(self, port: Port) -> list[PortedKernel]:
        return [k for k in port.kernels if self.kernel in ("", k.kernel)]

    def instances(self, kernel: PortedKernel) -> list[PortedInstance]:
        return [
            i
            for i in kernel.instances
            if self.signature in ("", i.signature.name) and self.architecture in ("", i.architecture)
        ]


@click.command()
@click.argument("target")
@click.option(
    "--rust", "view", flag_value="rust", default=True, help="The Rust source (this is the default)."
)
@click.option("--ir", "view", flag_value="ir", help="Tile IR of both sides.")
@click.option("--sass", "view", flag_value="sass", help="Machine code of the port.")
@click.option("--diff", "view", flag_value="diff", help="Where the Tile IR of the two sides differs.")
@click.option("--kernel", default="", help="Only this kernel.")
@click.option("--signature", default="", help="Only this signature.")
@click.option("--arch", "architecture", default="", help="Only this architecture.")
def command(target: str, view: str, kernel: str, signature: str, architecture: str) -> int:
    """Look at what was made of the kernels of TARGET."""
    chosen = Filter(kernel, signature, architecture)
    session = options.open_session()
    ports: list[Port] = []

    def choose(providers: Providers) -> Sequence[Artifact]:
        ports.append(_port(target, providers))
        return _ARTIFACTS[view](ports[-1], chosen)

    contents = session.contents(target, choose)
    texts = [text for port in ports for text in _VIEWS[view](port, chosen, contents)]
    if not texts:
        raise DiagnosticError(_nothing(target, ports, chosen))
    click.echo("\n".join(texts), nl=False)
    return 0


def _port(target: str, providers: Providers) -> Port:
    port = providers.get("Port")
    if not isinstance(port, Port):
        fact = f"{target} has no port to show"
        help = "tilebuild query 'kind(tile_operator, //...)' lists those that have"
        raise DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, help=help))
    return port


def _nothing(target: str, ports: Sequence[Port], chosen: Filter) -> Diagnostic:
    kernels = [kernel for port in ports for kernel in port.kernels]
    names = ", ".join(k.kernel for k in kernels)
    instances = sorted({f"{i.signature.name}/{i.architecture}" for k in kernels for i in k.instances})
    fact = f"nothing of {target} has {chosen.words}"
    return Diagnostic(fact, Blame.BUILD_FILE, help=f"kernels: {names}\ninstances: {', '.join(instances)}")


def _sources(port: Port, chosen: Filter) -> list[Artifact]:
    return [kernel.source for kernel in chosen.kernels(port)]


def _texts(port: Port, chosen: Filter) -> list[Artifact]:
    instances = [i for kernel in chosen.kernels(port) for i in chosen.instances(kernel)]
    return [side.text for i in instances for side in (i.python, i.rust)]


def _texts_and_differences(port: Port, chosen: Filter) -> list[Artifact]:
    return [*_texts(port, chosen), *(kernel.differences for kernel in chosen.kernels(port))]


def _cubins(port: Port, chosen: Filter) -> list[Artifact]:
    return [i.rust.cubin for kernel in chosen.kernels(port) for i in chosen.instances(kernel)]


def _show_rust(port: Port, chosen: Filter, contents: Contents) -> Iterator[str]:
    for kernel in chosen.kernels(port):
        text = contents.get(kernel.source, b"").decode()
        yield text or f"// {kernel.kernel} has no port: tilebuild build {port.target} says why\n"


def _show_ir(port: Port, chosen: Filter, contents: Contents) -> Iterator[str]:
    for kernel, instance in _pairs(port, chosen):
        for side, artifact in (("Python", instance.python.text), ("Rust", instance.rust.text)):
            yield f"// {_name(kernel, instance)}: {side}\n{contents.get(artifact, b'').decode()}"


def _show_diff(port: Port, chosen: Filter, contents: Contents) -> Iterator[str]:
    for kernel in chosen.kernels(port):
        for item in json.loads(contents.get(kernel.differences) or b"[]"):
            yield Diagnostic.from_json(item).render() + "\n"
    for kernel, instance in _pairs(port, chosen):
        python, rust = (
            contents.get(artifact, b"").decode().splitlines(keepends=True)
            for artifact in (instance.python.text, instance.rust.text)
        )
        name = _name(kernel, instance)
        lines = list(difflib.unified_diff(python, rust, f"{name} Python", f"{name} Rust"))
        yield "".join(lines) if lines else f"{name}: the Tile IR is equal, letter by letter\n"


def _show_sass(port: Port, chosen: Filter, contents: Contents) -> Iterator[str]:
    tool = shutil.which("nvdisasm")
    for kernel, instance in _pairs(port, chosen):
        cubin = contents.get(instance.rust.cubin, b"")
        heading = f"// {_name(kernel, instance)}: cubin of {len(cubin)} bytes"
        if tool is None:
            yield f"{heading}; nvdisasm of a CUDA toolkit on the PATH would show its instructions\n"
        else:
            yield f"{heading}\n{_disassemble(tool, cubin)}"


def _disassemble(tool: str, cubin: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([tool, "-c", file.name], capture_output=True, text=True)
    if done.returncode != 0:
        raise DiagnosticError(Diagnostic(f"nvdisasm failed: {done.stderr.strip()}", Blame.TOOLCHAIN))
    return done.stdout


def _pairs(port: Port, chosen: Filter) -> Iterator[tuple[PortedKernel, PortedInstance]]:
    return ((kernel, i) for kernel in chosen.kernels(port) for i in chosen.instances(kernel))


def _name(kernel: PortedKernel, instance: PortedInstance) -> str:
    return f"{kernel.kernel} {instance.signature.name}/{instance.architecture}"


#: What each view reads, and how it reads.
_ARTIFACTS: Mapping[str, Callable[[Port, Filter], Sequence[Artifact]]] = {
    "rust": _sources,
    "ir": _texts,
    "sass": _cubins,
    "diff": _texts_and_differences,
}
_VIEWS: Mapping[str, Callable[[Port, Filter, Contents], Iterator[str]]] = {
    "rust": _show_rust,
    "ir": _show_ir,
    "sass": _show_sass,
    "diff": _show_diff,
}
