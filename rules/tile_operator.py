"""Declares the actions behind one operator: port, proof, tests and benchmarks of its kernels. Knows no
compiler.

For each kernel that a case launches, the ladder of rungs is laid out whole; the actions of a rung are guarded
by the file `next` of the rung before, so that a rung is tried only when the better one was found wanting:

    PythonIr ─► Assemble ─────────────────┐
        └─► Translate ─► RustIr ─► Assemble ─► Compare ─► Judge ─► (next rung)
                 └─► CargoCheck ─────────────────────────┘  └─► Choose ─► PublishPort ─► CpuTest ─► Summarize
                                                                            └─► GpuPlan, ledger ─────┘
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field

from tilebuild.action import Artifact
from tilebuild.case import Case, CaseError, read_case
from tilebuild.device_class import DeviceClass
from tilebuild.grids import GridError, parse
from tilebuild.ledger import FOLDER, file_of
from tilebuild.providers import Compiled, GpuPlan, Library, Port, PortedInstance, PortedKernel
from tilebuild.rule import DataFile, Derived, Label, Providers, RuleContext, SourceFile, rule
from tilebuild.signature import Signature
from tilebuild.translator.rungs import RUNGS
from tilebuild.verdict import EVIDENCE

#: Some kernels take the assembler minutes; a comparison may assemble each side many times.
ASSEMBLY_LIMIT_S = 3600.0
COMPARISON_LIMIT_S = 4 * ASSEMBLY_LIMIT_S


class Gates(BaseModel):
    """What an operator must reach. A gate lowered below the default needs a reason."""

    model_config = ConfigDict(extra="forbid")

    evidence: Literal[EVIDENCE] = "same-machine-code"  # type: ignore[valid-type]
    speed: float = Field(default=0.95, gt=0)
    row_floor: float = Field(default=0.90, gt=0)
    reason: str = ""


class Attributes(BaseModel):
    """Attributes of `tile_operator`."""

    model_config = ConfigDict(extra="forbid")

    src: SourceFile
    cases: list[DataFile | dict[str, Any]]
    reference: SourceFile | None = None
    inputs: SourceFile | None = None
    deps: list[Label] = []
    grids: dict[str, list[str]] = {}
    hints: dict[str, dict[str, Any]] = {}
    gates: Gates = Gates()
    tolerance: dict[Literal["c", "L", "absolute"], float] = {}


@dataclass(frozen=True)
class Instance:
    """One signature of a kernel on one architecture: what is compiled once."""

    signature: Signature
    architecture: str

    @property
    def key(self) -> str:
        return f"{self.signature.name}/{self.architecture}"


@dataclass(frozen=True)
class PythonSide:
    """What the Python front end and the assembler make of one instance."""

    byte_code: Artifact
    text: Artifact
    status: Artifact
    hints: Artifact
    interface: Artifact
    names: Artifact
    cubin: Artifact
    assembly: Artifact


def _cpu_test(ctx: RuleContext[Attributes]) -> Providers:
    """`:name.cpu_test`: the operator's cases on the CPU."""
    assert ctx.parent is not None
    verdict = _summarize(ctx, "verdict.json", ctx.parent["Port"], tests=ctx.parent["CpuTests"])
    return Providers(files=[verdict], Verdict=verdict)


def _gpu_test(ctx: RuleContext[Attributes]) -> Providers:
    """`:name.gpu_test`: what is recorded of the operator's cases on the required devices."""
    assert ctx.parent is not None
    plans: Sequence[GpuPlan] = ctx.parent["GpuPlans"]
    verdict = _summarize(ctx, "verdict.json", ctx.parent["Port"], plans=plans, gpu=("test",))
    return Providers(files=[verdict], Verdict=verdict, GpuPlans=plans)


def _benchmark(ctx: RuleContext[Attributes]) -> Providers:
    """`:name.benchmark`: the speed gate; by identity where that decides it, unless figures are asked for."""
    assert ctx.parent is not None
    port, plans = ctx.parent["Port"], ctx.parent["GpuPlans"]
    verdict = _summarize(ctx, "verdict.json", port, plans=plans, gpu=("speed",))
    measured = _summarize(ctx, "verify/bench/verdict.json", port, plans=plans, gpu=("measured-speed",))
    return Providers(files=[verdict], Verdict=verdict, GpuPlans=plans, Levels={"bench": [measured]})


def _derived(label: Label, attributes: Attributes) -> Sequence[Derived]:
    return [
        Derived("cpu_test", kind="tile_cpu_test", function=_cpu_test, test=True),
        Derived("gpu_test", kind="tile_gpu_test", function=_gpu_test, test=True, tags=("gpu",)),
        Derived("benchmark", kind="tile_benchmark", function=_benchmark, test=True, tags=("gpu",)),
    ]


@rule(attributes=Attributes, derived=_derived)
def tile_operator(ctx: RuleContext[Attributes]) -> Providers:
    """Ports the kernels of one Python file, proves the ports equal and tests them.

    Raises a diagnostic at the attribute for what cannot be: unknown arrays in a case, a lowered gate without
    a reason.
    """
    if ctx.attr.gates.evidence != "same-machine-code" and not ctx.attr.gates.reason:
        ctx.fail(
            "a gate below same-machine-code needs a reason", "gates", help='add "reason": "…" to the gates'
        )
    _check_grids(ctx)
    cases = tuple(_cases(ctx))
    driver = _driver(ctx)
    kernels = tuple(
        _kernel(ctx, name, signatures, driver) for name, signatures in _signatures(ctx, cases).items()
    )
    port = Port(str(ctx.label), cases, kernels)
    tests = _cpu_tests(ctx, port)
    published = [file for kernel in kernels for file in kernel.published]
    plans = tuple(_gpu_plans(ctx, port))
    levels: dict[str, list[Artifact]] = {"none": published}
    for level, summed, gpu in (
        ("compare", (), ()),
        ("cpu", tests, ()),
        ("gpu", tests, ("test", "speed")),
        ("bench", tests, ("test", "measured-speed")),
    ):
        name = "verdict.json" if level == "gpu" else f"verify/{level}/verdict.json"
        verdict = _summarize(ctx, name, port, tests=summed, plans=plans, gpu=gpu)
        levels[level] = [*published, verdict]
    whole = levels["gpu"][-1]
    levels["bench"].insert(-1, whole)
    return Providers(
        files=levels["gpu"],
        Port=port,
        CpuTests=tests,
        GpuPlans=plans,
        Verdict=whole,
        Levels=levels,
    )


# Cases and signatures


def _check_grids(ctx: RuleContext[Attributes]) -> None:
    """Whether the formulas can be read; what they name, only the kernel knows."""
    for kernel, texts in ctx.attr.grids.items():
        if not 1 <= len(texts) <= 3:
            ctx.fail(f"a grid has one to three dimensions, not {len(texts)}", "grids", kernel)
        for position, text in enumerate(texts):
            try:
                parse(text)
            except GridError as error:
                ctx.fail(error.fact, "grids", kernel, position, help=error.help)


def _cases(ctx: RuleContext[Attributes]) -> Iterator[Case]:
    names: set[str] = set()
    for position, item in enumerate(ctx.attr.cases):
        if isinstance(item, DataFile):
            continue
        try:
            case = read_case(item)
        except CaseError as error:
            _fail_case(ctx, position, item, error)
        if case.name in names:
            ctx.fail(
                f"two cases are named {case.name!r}",
                "cases",
                position,
                help="names tell verdicts apart: make them unique",
            )
        names.add(case.name)
        yield case


def _fail_case(
    ctx: RuleContext[Attributes], position: int, item: Mapping[str, Any], error: CaseError
) -> NoReturn:
    name = item.get("name") or f"number {position + 1}"
    facts = "; ".join(
        f"{'.'.join(map(str, path))}: {fact}" if path else fact for path, fact in error.problems
    )
    ctx.fail(f"case {name}: {facts}", "cases", position, *error.problems[0][0])


def _signatures(ctx: RuleContext[Attributes], cases: Sequence[Case]) -> dict[str, tuple[Signature, ...]]:
    """The distinct signatures of each kernel, in the order in which the cases meet them."""
    found: dict[str, dict[Signature, None]] = {}
    for case in cases:
        for step in case.steps:
            found.setdefault(step.kernel, {})[case.signature(step)] = None
    for item in ctx.attr.cases:
        if isinstance(item, DataFile):
            for kernel, signature in _read_signature_file(ctx, item):
                found.setdefault(kernel, {})[signature] = None
    if not found:
        ctx.fail("the operator has no case, so there is nothing to port", "cases", help="add a launch(…)")
    return {kernel: tuple(signatures) for kernel, signatures in found.items()}


def _read_signature_file(ctx: RuleContext[Attributes], file: DataFile) -> Iterator[tuple[str, Signature]]:
    if not file.name.endswith(".signatures.json"):
        ctx.fail(f"{file} is no signature file", "cases", help="its name must end in .signatures.json")
    try:
        document = json.loads(ctx.content(file))
        for entry in document["entries"]:
            for data in entry["signatures"]:
                yield entry["kernel"], Signature.from_json(data)
    except (ValueError, KeyError, TypeError) as error:
        ctx.fail(f"{file} is no signature file: {type(error).__name__}: {error}", "cases")


# One kernel


def _driver(ctx: RuleContext[Attributes]) -> Artifact:
    """Says that the Rust driver is built; every operator declares the same action, so it runs once."""
    built = ctx.declare_output("driver.json")
    ctx.action(
        "BuildDriver",
        argv=[ctx.tool("build_driver"), "--out", "driver.json"],
        tools=[ctx.tool("cargo")],
        outputs=[("driver.json", built)],
        serial="cargo",
        timeout_s=3600.0,
        detail="Rust driver",
    )
    return built


def _kernel(
    ctx: RuleContext[Attributes], kernel: str, signatures: Sequence[Signature], driver: Artifact
) -> PortedKernel:
    instances = [Instance(s, architecture) for s in signatures for architecture in ctx.architectures]
    python = {i.key: _python_side(ctx, kernel, i) for i in instances}
    judged: list[tuple[str, Artifact]] = []
    candidates: list[tuple[str, Artifact]] = []
    guard: Artifact | None = None
    for rung in RUNGS:
        verdict, files, guard = _rung(ctx, kernel, rung, instances, python, driver, guard)
        judged.append((f"{rung}/rung.json", verdict))
        candidates += files
    choice = ctx.declare_output(f"{kernel}/choice.json")
    ctx.action(
        "Choose",
        argv=[ctx.tool("choose"), "--kernel", kernel, *RUNGS],
        inputs=judged,
        optional=[local for local, _ in judged],
        outputs=[("choice.json", choice)],
        detail=kernel,
    )
    return _publish(ctx, kernel, instances, python, choice, candidates)


def _python_side(ctx: RuleContext[Attributes], kernel: str, instance: Instance) -> PythonSide:
    def output(name: str) -> Artifact:
        return ctx.declare_output(f"{kernel}/python/{instance.key}/{name}")

    side = PythonSide(
        byte_code=output("kernel.tilebc"),
        text=output("kernel.tileir"),
        status=output("status.json"),
        hints=output("hints.json"),
        interface=output("interface.json"),
        names=output("names.json"),
        cubin=output("kernel.cubin"),
        assembly=output("assembly.json"),
    )
    source, sources = _sources(ctx)
    ctx.action(
        "PythonIr",
        argv=[
            ctx.tool("python_ir"),
            *("--source", source, "--kernel", kernel),
            *("--signature", "signature.json", "--arch", instance.architecture),
        ],
        tools=[ctx.tool("tileirdisasm")],
        inputs=sources,
        inline={"signature.json": _signature_json(ctx, instance)},
        outputs=[
            ("kernel.tilebc", side.byte_code),
            ("kernel.tileir", side.text),
            ("status.json", side.status),
            ("hints.json", side.hints),
            ("interface.json", side.interface),
            ("names.json", side.names),
        ],
        detail=f"{kernel} {instance.key}",
    )
    _assemble(
        ctx,
        f"{kernel} {instance.key} python",
        instance.architecture,
        side.byte_code,
        side.cubin,
        side.assembly,
    )
    return side


def _signature_json(ctx: RuleContext[Attributes], instance: Instance) -> bytes:
    """The signature with the hints for this architecture: those of the target, then those of the launch."""
    hints = {
        **ctx.attr.hints.get("default", {}),
        **ctx.attr.hints.get(instance.architecture, {}),
        **dict(instance.signature.hints),
    }
    return json.dumps(instance.signature.to_json() | {"hints": hints}, sort_keys=True).encode()


def _sources(ctx: RuleContext[Attributes]) -> tuple[str, list[tuple[str, Artifact]]]:
    """The local name of the kernel file, and all that may be imported, under its import path."""
    files: dict[str, Artifact] = {}
    for dependency in ctx.attr.deps:
        library: Library = ctx.provider(dependency, Library)
        files.update(library.files)
    source = ctx.file(ctx.attr.src)
    local = next((path for path, artifact in files.items() if artifact == source), _import_path(source))
    files[local] = source
    return local, sorted(files.items())


def _import_path(source: Artifact) -> str:
    """A file of a distribution is imported by its path in it, one of the workspace by its own."""
    return source.path.split("/", 2)[2] if source.path.startswith("external/") else source.path


def _assemble(
    ctx: RuleContext[Attributes],
    detail: str,
    architecture: str,
    byte_code: Artifact,
    cubin: Artifact,
    assembly: Artifact,
    guard: Artifact | None = None,
) -> None:
    ctx.action(
        "Assemble",
        argv=[ctx.tool("assemble"), "--arch", architecture],
        tools=[ctx.tool("tileiras")],
        inputs=[("kernel.tilebc", byte_code)],
        outputs=[("kernel.cubin", cubin), ("assembly.json", assembly)],
        guard=guard,
        timeout_s=ASSEMBLY_LIMIT_S,
        detail=detail,
    )


# One rung


def _rung(
    ctx: RuleContext[Attributes],
    kernel: str,
    rung: str,
    instances: Sequence[Instance],
    python: Mapping[str, PythonSide],
    driver: Artifact,
    guard: Artifact | None,
) -> tuple[Artifact, list[tuple[str, Artifact]], Artifact]:
    """Declares the actions of one rung. Returns its verdict, what to publish of it, the next rung's guard."""

    def output(name: str) -> Artifact:
        return ctx.declare_output(f"{kernel}/{rung}/{name}")

    detail = f"{kernel} {rung}"
    port, lines, translation, check = (
        output(n) for n in ("port.rs", "map.json", "instances.json", "check.json")
    )
    _translate(ctx, kernel, rung, instances, python, (port, lines, translation), guard)
    ctx.action(
        "CargoCheck",
        argv=[ctx.tool("cargo_check"), "--port", "port.rs", "--kernel", kernel, "--map", "map.json"],
        tools=[ctx.tool("cargo")],
        inputs=[("port.rs", port), ("map.json", lines), ("driver.json", driver)],
        outputs=[("check.json", check)],
        guard=guard,
        serial="cargo",
        detail=detail,
    )
    files = [(f"{rung}/port.rs", port), (f"{rung}/instances.json", translation)]
    judged: list[tuple[str, Artifact]] = []
    for instance in instances:
        made, verdicts = _rust_side(
            ctx, kernel, rung, instance, python[instance.key], (port, lines, translation, driver), guard
        )
        files += [(f"{rung}/{instance.key}/{name}", artifact) for name, artifact in made]
        judged += [(f"{instance.key}/{name}", artifact) for name, artifact in verdicts]
    verdict, following = output("rung.json"), output("next")
    ctx.action(
        "Judge",
        argv=[ctx.tool("judge"), "--rung", rung, *(i.key for i in instances)],
        inputs=[
            ("instances.json", translation),
            ("check.json", check),
            *((f"{i.key}/python.status.json", python[i.key].status) for i in instances),
            *((f"{i.key}/python.assembly.json", python[i.key].assembly) for i in instances),
            *judged,
        ],
        outputs=[("rung.json", verdict), ("next", following)],
        guard=guard,
        detail=detail,
    )
    return verdict, files, following


def _translate(
    ctx: RuleContext[Attributes],
    kernel: str,
    rung: str,
    instances: Sequence[Instance],
    python: Mapping[str, PythonSide],
    outputs: tuple[Artifact, Artifact, Artifact],
    guard: Artifact | None,
) -> None:
    source, _ = _sources(ctx)
    inputs: list[tuple[str, Artifact]] = [(source, ctx.file(ctx.attr.src))]
    for instance in instances:
        side = python[instance.key]
        inputs += [
            (f"{instance.key}/kernel.tileir", side.text),
            (f"{instance.key}/status.json", side.status),
            (f"{instance.key}/interface.json", side.interface),
            (f"{instance.key}/names.json", side.names),
            (f"{instance.key}/hints.json", side.hints),
        ]
    signatures = {f"{i.signature.name}/signature.json": _plain_signature(i.signature) for i in instances}
    operator = {"grids": {kernel: ctx.attr.grids[kernel]} if kernel in ctx.attr.grids else {}}
    ctx.action(
        "Translate",
        argv=[
            ctx.tool("translate"),
            "--kernel",
            kernel,
            "--rung",
            rung,
            "--source",
            source,
            "--out-dir",
            ".",
        ],
        tools=[ctx.tool("rustfmt")],
        inputs=inputs,
        inline=signatures | {"operator.json": json.dumps(operator, sort_keys=True).encode()},
        outputs=list(zip(("port.rs", "map.json", "instances.json"), outputs, strict=True)),
        guard=guard,
        detail=f"{kernel} {rung}",
    )


def _plain_signature(signature: Signature) -> bytes:
    return json.dumps(signature.to_json(), sort_keys=True).encode()


def _rust_side(
    ctx: RuleContext[Attributes],
    kernel: str,
    rung: str,
    instance: Instance,
    python: PythonSide,
    translated: tuple[Artifact, Artifact, Artifact, Artifact],
    guard: Artifact | None,
) -> tuple[list[tuple[str, Artifact]], list[tuple[str, Artifact]]]:
    """What is made of one instance. Returns what may be published of it, and what it is judged by."""

    def output(name: str) -> Artifact:
        return ctx.declare_output(f"{kernel}/{rung}/{instance.key}/{name}")

    detail = f"{kernel} {rung} {instance.key}"
    port, lines, translation, driver = translated
    byte_code, text, status, locations = (
        output(n) for n in ("kernel.tilebc", "kernel.tileir", "status.json", "locations.json")
    )
    ctx.action(
        "RustIr",
        argv=[
            ctx.tool("rust_ir"),
            *("--port", "port.rs", "--instances", "instances.json"),
            *("--instance", instance.key, "--arch", instance.architecture, "--map", "map.json"),
        ],
        tools=[ctx.tool("driver"), ctx.tool("tileirdisasm")],
        inputs=[
            ("port.rs", port),
            ("map.json", lines),
            ("instances.json", translation),
            ("driver.json", driver),
        ],
        outputs=[
            ("kernel.tilebc", byte_code),
            ("kernel.tileir", text),
            ("status.json", status),
            ("locations.json", locations),
        ],
        guard=guard,
        detail=detail,
    )
    cubin, assembly = output("kernel.cubin"), output("assembly.json")
    _assemble(ctx, f"{detail} rust", instance.architecture, byte_code, cubin, assembly, guard)
    comparison = output("comparison.json")
    ctx.action(
        "Compare",
        argv=[ctx.tool("compare"), "--arch", instance.architecture],
        tools=[ctx.tool("tileiras")],
        inputs=[
            ("python.tilebc", python.byte_code),
            ("python.tileir", python.text),
            ("python.cubin", python.cubin),
            ("python.assembly.json", python.assembly),
            ("rust.tilebc", byte_code),
            ("rust.tileir", text),
            ("rust.cubin", cubin),
            ("rust.assembly.json", assembly),
        ],
        outputs=[("comparison.json", comparison)],
        guard=guard,
        timeout_s=COMPARISON_LIMIT_S,
        detail=detail,
    )
    made = [
        ("kernel.tilebc", byte_code),
        ("kernel.tileir", text),
        ("kernel.cubin", cubin),
        ("locations.json", locations),
    ]
    return made, [("rust.status.json", status), ("comparison.json", comparison)]


# What people look at


def _publish(
    ctx: RuleContext[Attributes],
    kernel: str,
    instances: Sequence[Instance],
    python: Mapping[str, PythonSide],
    choice: Artifact,
    candidates: Sequence[tuple[str, Artifact]],
) -> PortedKernel:
    source = ctx.declare_output(f"{kernel}.rs")
    description = ctx.declare_output(f"{kernel}.port.json")
    differences = ctx.declare_output(f"{kernel}.differences.json")
    made = {
        i.key: {
            name: ctx.declare_output(f"{kernel}/out/{i.key}/{name}")
            for name in ("kernel.tilebc", "kernel.tileir", "kernel.cubin")
        }
        for i in instances
    }
    ctx.action(
        "PublishPort",
        argv=[ctx.tool("publish"), *(i.key for i in instances)],
        inputs=[
            ("choice.json", choice),
            *((f"{i.key}/names.json", python[i.key].names) for i in instances),
            *candidates,
        ],
        optional=[local for local, _ in candidates],
        outputs=[
            ("port.rs", source),
            ("port.json", description),
            ("differences.json", differences),
            *(
                (f"out/{key}/{name}", artifact)
                for key, files in made.items()
                for name, artifact in files.items()
            ),
        ],
        detail=kernel,
    )
    return PortedKernel(
        kernel=kernel,
        source=source,
        description=description,
        differences=differences,
        choice=choice,
        instances=tuple(
            PortedInstance(
                signature=i.signature,
                architecture=i.architecture,
                interface=python[i.key].interface,
                python=Compiled(python[i.key].byte_code, python[i.key].text, python[i.key].cubin),
                rust=Compiled(
                    *(made[i.key][name] for name in ("kernel.tilebc", "kernel.tileir", "kernel.cubin"))
                ),
            )
            for i in instances
        ),
    )


def _cpu_tests(ctx: RuleContext[Attributes], port: Port) -> list[tuple[str, Artifact]]:
    """One action per case, so that a new case leaves the verdicts of the others alone."""
    kernels = {kernel.kernel: kernel for kernel in port.kernels}
    return [(f"{case.name}.json", _cpu_test_of(ctx, case, kernels)) for case in port.cases]


def _cpu_test_of(ctx: RuleContext[Attributes], case: Case, kernels: Mapping[str, PortedKernel]) -> Artifact:
    inputs: dict[str, Artifact] = {}
    steps = []
    for step in case.steps:
        # The interpreter executes Tile IR, which is the same for all architectures but for its hints.
        instance = kernels[step.kernel].instance(case.signature(step), ctx.architectures[0])
        local = f"{step.kernel}/{instance.signature.name}"
        inputs |= {
            f"{local}/python.tileir": instance.python.text,
            f"{local}/rust.tileir": instance.rust.text,
            f"{local}/interface.json": instance.interface,
        }
        steps.append({side: f"{local}/{side}.tileir" for side in ("python", "rust")})
        steps[-1]["interface"] = f"{local}/interface.json"
    plan = {
        "schema": 1,
        "operator": ctx.label.name,
        "reference": None,
        "inputs": None,
        "bounds": ctx.attr.tolerance,
        "grids": ctx.attr.grids,
        "cases": [{"case": case.to_json(), "steps": steps}],
    }
    for role, label in (("reference", ctx.attr.reference), ("inputs", ctx.attr.inputs)):
        if label is not None:
            file = ctx.file(label)
            inputs[file.path] = file
            plan[role] = file.path
    result = ctx.declare_output(f"cpu_test/{case.name}.json")
    ctx.action(
        "CpuTest",
        argv=[ctx.tool("cpu_test"), "--plan", "plan.json", "--out", "cpu_test.json"],
        inputs=list(inputs.items()),
        inline={"plan.json": json.dumps(plan, sort_keys=True).encode()},
        outputs=[("cpu_test.json", result)],
        detail=case.name,
    )
    return result


def _gpu_plans(ctx: RuleContext[Attributes], port: Port) -> Iterator[GpuPlan]:
    """One per required device class that the operator is built for; planning needs no GPU."""
    for device in ctx.settings.gpu.classes:
        architecture = next((name for name in ctx.architectures if device.runs(name)), None)
        if architecture is not None:
            yield _gpu_plan(ctx, port, device, architecture)


def _gpu_plan(ctx: RuleContext[Attributes], port: Port, device: DeviceClass, architecture: str) -> GpuPlan:
    inputs: dict[str, Artifact] = {}
    cases = [_gpu_case(case, port, architecture, inputs) for case in port.cases]
    cubins = tuple(artifact for local, artifact in inputs.items() if local.endswith(".cubin"))
    sources = {
        role: None if label is None else ctx.file(label)
        for role, label in (("reference", ctx.attr.reference), ("inputs", ctx.attr.inputs))
    }
    request = {
        "schema": 1,
        "target": port.target,
        "operator": ctx.label.name,
        "device": device.to_json(),
        "bounds": ctx.attr.tolerance,
        "grids": ctx.attr.grids,
        "cases": cases,
        **{role: None if file is None else file.path for role, file in sources.items()},
    }
    files = tuple(dict.fromkeys(file for file in sources.values() if file is not None))
    plan = ctx.declare_output(f"gpu/{device.slug}.json")
    ctx.action(
        "GpuPlan",
        argv=[ctx.tool("gpu_plan"), "--request", "request.json", "--out", "gpu_plan.json"],
        inputs=[*inputs.items(), *files],
        inline={"request.json": json.dumps(request, sort_keys=True).encode()},
        outputs=[("gpu_plan.json", plan)],
        detail=device.slug,
    )
    ledger = Artifact(f"{FOLDER}/{file_of(port.target, device)}")
    return GpuPlan(device, plan, ledger, cubins, files)


def _gpu_case(case: Case, port: Port, architecture: str, inputs: dict[str, Artifact]) -> dict[str, Any]:
    """A case of a request; the files that it names are added to `inputs`."""
    kernels = {kernel.kernel: kernel for kernel in port.kernels}
    steps = []
    for step in case.steps:
        kernel = kernels[step.kernel]
        instance = kernel.instance(case.signature(step), architecture)
        local = f"{step.kernel}/{instance.signature.name}"
        files = {
            "python": (f"{local}/python.cubin", instance.python.cubin),
            "rust": (f"{local}/rust.cubin", instance.rust.cubin),
            "interface": (f"{local}/interface.json", instance.interface),
            "choice": (f"{step.kernel}/choice.json", kernel.choice),
        }
        inputs |= dict(files.values())
        names = {role: name for role, (name, _) in files.items()}
        steps.append(names | {"instance": f"{instance.signature.name}/{architecture}"})
    return {"case": case.to_json(), "steps": steps}


def _summarize(
    ctx: RuleContext[Attributes],
    name: str,
    port: Port,
    *,
    tests: Sequence[tuple[str, Artifact]] = (),
    plans: Sequence[GpuPlan] = (),
    gpu: Sequence[str] = (),
) -> Artifact:
    """Declares a verdict file. `gpu` names the gates that follow from the plans and the ledger."""
    verdict = ctx.declare_output(name)
    used = plans if gpu else ()
    ledgers = [(plan.ledger.path, plan.ledger) for plan in used]
    ctx.action(
        "Summarize",
        argv=[
            ctx.tool("summarize"),
            *("--target", str(ctx.label), "--gates", "gates.json"),
            *(word for local, _ in tests for word in ("--cpu-test", f"cpu_test/{local}")),
            *(word for gate in gpu for word in ("--gpu", gate)),
            *(word for plan in used for word in ("--gpu-plan", f"gpu/{plan.device.slug}.json")),
            *("--", *(kernel.kernel for kernel in port.kernels)),
        ],
        inputs=[
            *((f"{kernel.kernel}/choice.json", kernel.choice) for kernel in port.kernels),
            *((f"cpu_test/{local}", artifact) for local, artifact in tests),
            *((f"gpu/{plan.device.slug}.json", plan.plan) for plan in used),
            *ledgers,
        ],
        optional=[local for local, _ in ledgers],
        inline={"gates.json": ctx.attr.gates.model_dump_json().encode()},
        outputs=[("verdict.json", verdict)],
        detail=ctx.label.name,
    )
    return verdict
