//! Constants of several numbers, which a kernel of cutile 0.5.0 can only join from one tile for each number.
//!
//! `cat` of constants becomes the constant that it is, and so does the `reshape` of such a one. Knows no kernel. Numbers of
//! less than a byte are packed otherwise and stay as they are.

use std::collections::HashSet;

use cutile_ir::Module;
use cutile_ir::bytecode::Opcode;
use cutile_ir::ir::{Attribute, DenseElements, OpId, ScalarType, TileElementType, Type, Value, ValueProducer};

/// Joins every table of the module.
pub fn join(module: &mut Module) {
    let mut joined: HashSet<OpId> = HashSet::new();
    for id in operations(module) {
        let of_table = || producer(module, module.op(id).operands[0]).is_some_and(|source| joined.contains(&source));
        let cat = module.op(id).opcode == Opcode::Cat;
        if (cat || module.op(id).opcode == Opcode::Reshape && of_table())
            && let Some(table) = table(module, id)
        {
            let operation = module.op_mut(id);
            operation.opcode = Opcode::Constant;
            operation.operands.clear();
            operation.attributes = vec![("value".to_owned(), Attribute::DenseElements(table))];
            if cat {
                joined.insert(id);
            }
        }
    }
}

/// All operations, an operation before the contents of its regions.
fn operations(module: &Module) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut pending: Vec<OpId> = module.functions.iter().rev().copied().collect();
    while let Some(id) = pending.pop() {
        found.push(id);
        for &region in module.op(id).regions.iter().rev() {
            for &block in module.region(region).blocks.iter().rev() {
                pending.extend(module.block(block).ops.iter().rev());
            }
        }
    }
    found
}

fn producer(module: &Module, value: Value) -> Option<OpId> {
    match module.value_data(value).producer {
        ValueProducer::OpResult { op, .. } => Some(op),
        ValueProducer::BlockArg { .. } => None,
    }
}

/// The value of an operation on constants, if it has one dimension or only changes the shape.
fn table(module: &Module, id: OpId) -> Option<DenseElements> {
    let operation = module.op(id);
    let Type::Tile(kind) = &operation.result_types[0] else { return None };
    let TileElementType::Scalar(scalar) = kind.element_type else { return None };
    if matches!(scalar, ScalarType::I1 | ScalarType::I4 | ScalarType::F4E2M1FN) {
        return None;
    }
    let count = usize::try_from(kind.shape.iter().product::<i64>()).ok()?;
    let data = match operation.opcode {
        Opcode::Constant => {
            let (_, Attribute::DenseElements(value)) = operation.attributes.iter().find(|(name, _)| name == "value")?
            else {
                return None;
            };
            if value.data.len() == scalar.byte_width() { value.data.repeat(count) } else { value.data.clone() }
        }
        Opcode::Reshape | Opcode::Broadcast => data(module, operation.operands[0])?,
        Opcode::Cat if kind.shape.len() == 1 => {
            [data(module, operation.operands[0])?, data(module, operation.operands[1])?].concat()
        }
        _ => return None,
    };
    let fits = data.len() == count * scalar.byte_width();
    fits.then(|| DenseElements { element_type: Type::Tile(kind.clone()), shape: kind.shape.clone(), data })
}

fn data(module: &Module, value: Value) -> Option<Vec<u8>> {
    table(module, producer(module, value)?).map(|table| table.data)
}
