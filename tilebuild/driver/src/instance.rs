//! Which entry to compile and with which facts: the instance file.

use std::collections::BTreeMap;

use cutile_compiler::hints::{CompileOptions, DebugInfoLevel};
use cutile_compiler::specialization::{DivHint, SpecializationBits};
use serde::Deserialize;

/// Divisors count elements, except that of the base pointer, which counts bytes; they are taken as given.
const LARGEST_DIVISOR: i32 = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    pub module: String,
    pub entry: String,
    #[serde(default)]
    pub generics: Vec<String>,
    /// Per tensor parameter; -1 is a stride known only at run time.
    #[serde(default)]
    pub strides: BTreeMap<String, Vec<i32>>,
    #[serde(default)]
    pub spec_args: BTreeMap<String, Facts>,
    /// Divisors of integer scalars and raw pointers.
    #[serde(default)]
    pub scalar_hints: BTreeMap<String, i32>,
    #[serde(default)]
    pub options: Options,
    /// Whether general reductions get their bodies and tables of numbers are joined, which a launch does not do.
    #[serde(default)]
    pub ahead_of_time: bool,
}

/// `SpecializationBits` of one tensor parameter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    pub shape_div: Vec<i32>,
    pub stride_div: Vec<i32>,
    pub stride_one: Vec<bool>,
    pub base_ptr_div: i32,
    pub elements_disjoint: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    pub occupancy: Option<i32>,
    pub num_cta_in_cga: Option<i32>,
    #[serde(alias = "num_worker_warps")]
    pub num_worker_warps_per_cta: Option<i32>,
    pub max_divisibility: Option<i32>,
}

impl Facts {
    pub fn bits(&self) -> SpecializationBits {
        SpecializationBits {
            shape_div: self.shape_div.iter().copied().map(divisor).collect(),
            stride_div: self.stride_div.iter().copied().map(divisor).collect(),
            stride_one: self.stride_one.clone(),
            base_ptr_div: divisor(self.base_ptr_div),
            elements_disjoint: self.elements_disjoint,
        }
    }
}

impl Options {
    /// Without debug information, whatever profile built this program: it would keep checks inside loops.
    pub fn compile_options(&self) -> CompileOptions {
        let mut options = CompileOptions::default().debug_info(DebugInfoLevel::None);
        options.occupancy = self.occupancy;
        options.num_cta_in_cga = self.num_cta_in_cga;
        options.num_worker_warps_per_cta = self.num_worker_warps_per_cta;
        options.max_divisibility = self.max_divisibility;
        options
    }
}

pub fn divisor(value: i32) -> DivHint {
    DivHint { divisor: value, max: LARGEST_DIVISOR.max(value) }
}
