//! Source lines of operations: taken out of the module, so that its byte code does not hold them.

use cutile_ir::Module;
use cutile_ir::ir::{Location, OpId};

use crate::source::FILE;

/// The line in the text of every operation of the entries, an operation before the contents of its regions (0: no line).
/// Afterwards the module holds no location.
pub fn take(module: &mut Module) -> Vec<u32> {
    let mut lines = Vec::new();
    let mut stack: Vec<OpId> = Vec::new();
    for function in module.functions.clone() {
        module.op_mut(function).location = Location::Unknown;
        push_contents(module, function, &mut stack);
        while let Some(operation) = stack.pop() {
            let location = std::mem::replace(&mut module.op_mut(operation).location, Location::Unknown);
            lines.push(line(&location));
            push_contents(module, operation, &mut stack);
        }
    }
    lines
}

fn push_contents(module: &Module, operation: OpId, stack: &mut Vec<OpId>) {
    for &region in module.op(operation).regions.iter().rev() {
        for &block in module.region(region).blocks.iter().rev() {
            stack.extend(module.block(block).ops.iter().rev());
        }
    }
}

/// The innermost place of a chain of calls that lies in the text; library functions are inlined from other files.
fn line(location: &Location) -> u32 {
    match location {
        Location::Unknown => 0,
        Location::FileLineCol { filename, line, .. } => own_line(filename, *line),
        Location::DebugInfo(place) => own_line(&place.filename, place.line),
        Location::CallSite { callee, caller } => match line(callee) {
            0 => line(caller),
            found => found,
        },
    }
}

fn own_line(file: &str, line: u32) -> u32 {
    if file.rsplit('/').next() == Some(FILE) { line } else { 0 }
}
