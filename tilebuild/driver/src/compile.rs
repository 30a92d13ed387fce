//! Source text and instance to byte code.

use cutile_compiler::compile_api::KernelCompiler;
use cutile_compiler::cuda_tile_runtime_utils::serialize_tile_ir_bytecode_for_version;
use cutile_compiler::specialization::{DivHint, SpecializationBits};
use cutile_ir::bytecode::BytecodeVersion;
use serde::Serialize;

use crate::combiners;
use crate::instance::{Instance, divisor};
use crate::locations;
use crate::source::{self, Failure};
use crate::tables;

const VERSION: BytecodeVersion = BytecodeVersion::V13_4;

pub struct Compiled {
    pub bytecode: Vec<u8>,
    pub facts: Facts,
}

#[derive(Serialize)]
pub struct Facts {
    /// The line of each operation, an operation before the contents of its regions; 0 is no line.
    pub locations: Vec<u32>,
    /// What became of the bounds checks of checked accesses.
    pub checks: Checks,
    /// Conditions that whoever launches the kernel must check.
    pub launch_checks: Vec<String>,
}

#[derive(Serialize)]
pub struct Checks {
    pub discharged: u32,
    pub hoisted: u32,
    pub in_place: u32,
}

pub fn compile(text: &str, instance: &Instance, arch: &str) -> Result<Compiled, Failure> {
    let module = source::module(text, &instance.module)?;
    let strides: Vec<(&str, &[i32])> =
        instance.strides.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
    let facts: Vec<(&str, SpecializationBits)> =
        instance.spec_args.iter().map(|(name, facts)| (name.as_str(), facts.bits())).collect();
    let scalar_hints: Vec<(&str, DivHint)> =
        instance.scalar_hints.iter().map(|(name, value)| (name.as_str(), divisor(*value))).collect();
    let artifacts = KernelCompiler::new(move || module.clone(), &instance.module, &instance.entry)
        .generics(instance.generics.clone())
        .strides(&strides)
        .spec_args(&facts)
        .scalar_hints(&scalar_hints)
        .options(instance.options.compile_options())
        .bytecode_version(VERSION)
        .target(arch)
        .compile()?;
    let counts = artifacts.check_counts();
    let checks = Checks { discharged: counts.discharged, hoisted: counts.hoisted, in_place: counts.in_place };
    let launch_checks = artifacts.launch_checks().iter().map(|check| format!("{:?}", check.predicate)).collect();
    let mut module = artifacts.into_module();
    if instance.ahead_of_time {
        combiners::close(&mut module)?;
        tables::join(&mut module);
    }
    let locations = locations::take(&mut module);
    let (bytecode, _) = serialize_tile_ir_bytecode_for_version(&module, VERSION)?;
    Ok(Compiled { bytecode, facts: Facts { locations, checks, launch_checks } })
}
