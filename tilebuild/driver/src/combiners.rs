//! Bodies of general reductions and scans, which the compiler of cutile 0.5.0 cannot write.
//!
//! A port calls such an operation with three groups of operands: the tiles, the elements that its combiner works on, and
//! what the combiner makes of them:
//!
//! ```text
//! let left = constant(0.0f32, shape![]);
//! let right = constant(0.0f32, shape![]);
//! let product = left * right;
//! let running = scan_f32(tile, (left, right), product);
//! ```
//!
//! Here the operations from the first element to the call become the body, whose arguments take the elements' place. Knows
//! no kernel and no combiner: whatever lies between is taken as it is, and anything that would change meaning is an error.

use std::collections::{HashMap, HashSet};

use cutile_ir::Module;
use cutile_ir::builder::{append_op, build_single_block_region};
use cutile_ir::bytecode::Opcode;
use cutile_ir::ir::{Attribute, BlockId, OpId, Operation, Type, Value, ValueProducer};

use crate::source::Failure;

const SEGMENTS: &str = "operandSegmentSizes";

/// Gives a body to every reduction and scan that lacks one.
pub fn close(module: &mut Module) -> Result<(), Failure> {
    let mut pending: Vec<OpId> = module.functions.clone();
    while let Some(operation) = pending.pop() {
        for block in blocks(module, operation) {
            while let Some(place) = first_open(module, block) {
                give_body(module, block, place)?;
            }
            pending.extend(&module.block(block).ops);
        }
    }
    module.verify_dominance().map_err(|error| Failure::unlocated(format!("a combiner reaches outside itself: {error}")))
}

fn blocks(module: &Module, operation: OpId) -> Vec<BlockId> {
    let regions = module.op(operation).regions.iter();
    regions.flat_map(|&region| module.region(region).blocks.iter().copied()).collect()
}

fn first_open(module: &Module, block: BlockId) -> Option<usize> {
    module.block(block).ops.iter().position(|&id| {
        let operation = module.op(id);
        matches!(operation.opcode, Opcode::Reduce | Opcode::Scan) && operation.regions.is_empty()
    })
}

/// The operands of an operation without a body.
struct Call {
    tiles: Vec<Value>,
    elements: Vec<Value>,
    results: Vec<Value>,
}

impl Call {
    fn of(operation: &Operation) -> Option<Self> {
        let (_, Attribute::Array(sizes)) = operation.attributes.iter().find(|(name, _)| name == SEGMENTS)? else {
            return None;
        };
        let count = operation.result_types.len();
        let expected = [count, 2 * count, count].map(|size| Attribute::i32(size as i64));
        if *sizes != expected {
            return None;
        }
        let (tiles, rest) = operation.operands.split_at(count);
        let (elements, results) = rest.split_at(2 * count);
        Some(Self { tiles: tiles.to_vec(), elements: elements.to_vec(), results: results.to_vec() })
    }
}

fn give_body(module: &mut Module, block: BlockId, place: usize) -> Result<(), Failure> {
    let operation = module.block(block).ops[place];
    let call = Call::of(module.op(operation)).ok_or_else(|| {
        Failure::unlocated("a reduction is called with other groups than tiles, elements and results")
    })?;
    let elements = defining_constants(module, block, &call.elements)?;
    let start = module.block(block).ops.iter().position(|id| elements.contains(id)).unwrap_or(place);
    let moved: Vec<OpId> = module.block_mut(block).ops.drain(start..place).collect();

    let types: Vec<Type> = call.elements.iter().map(|&value| module.value_type(value).clone()).collect();
    let (region, body, arguments) = build_single_block_region(module, &types);
    let renamed: HashMap<Value, Value> = call.elements.iter().copied().zip(arguments).collect();
    let rename = |value: &Value| renamed.get(value).copied().unwrap_or(*value);
    for id in moved.into_iter().filter(|id| !elements.contains(id)) {
        let operands = module.op(id).operands.iter().map(rename).collect();
        module.op_mut(id).operands = operands;
        append_op(module, body, id);
    }
    let location = module.op(operation).location.clone();
    let end = module.alloc_op(Operation {
        opcode: Opcode::Yield,
        operands: call.results.iter().map(rename).collect(),
        result_types: Vec::new(),
        attributes: Vec::new(),
        regions: Vec::new(),
        location,
    });
    append_op(module, body, end);

    let operation = module.op_mut(operation);
    operation.operands = call.tiles;
    operation.attributes.retain(|(name, _)| name != SEGMENTS);
    operation.regions.push(region);
    Ok(())
}

/// The operations that make the elements: distinct constants of this block, read by nothing but the combiner.
fn defining_constants(module: &Module, block: BlockId, elements: &[Value]) -> Result<HashSet<OpId>, Failure> {
    let own: HashSet<OpId> = module.block(block).ops.iter().copied().collect();
    let mut found = HashSet::new();
    for &element in elements {
        let ValueProducer::OpResult { op, .. } = module.value_data(element).producer else {
            return Err(Failure::unlocated("an element of a reduction is an argument of a block"));
        };
        if module.op(op).opcode != Opcode::Constant || !own.contains(&op) || !found.insert(op) {
            return Err(Failure::unlocated("an element of a reduction is no constant of its own beside the call"));
        }
    }
    Ok(found)
}
