//! Compiles one instance of a cuTile Rust kernel, given as source text, to Tile IR byte code.
//!
//! What `cargo build` and a launch would do together happens here without cargo: the text is parsed at run time and handed
//! to the same `KernelCompiler`. The byte code holds no source location, so a comment, another folder or a renamed local
//! leaves it alone; the line of each operation goes into the result beside it.
//!
//! This program knows neither Python nor the build: text and instance in, byte code and result out. A kernel that does not
//! compile is a result (exit status 0, `"ok": false`); only a wrong command line or an unreadable file is an error.

mod combiners;
mod compile;
mod instance;
mod locations;
mod source;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use cutile as _; // registers the modules that kernels import
use serde::Serialize;

use compile::Compiled;
use instance::Instance;
use source::Failure;

const USAGE: &str = "\
usage: tilebuild-driver --port FILE.rs --instance FILE.json --arch sm_XX --bytecode OUT --result OUT.json

  --port      Rust source text with the kernel's module
  --instance  which entry, with which generics, strides, facts and options
  --arch      target architecture
  --bytecode  where the byte code goes (empty when the kernel does not compile)
  --result    where the result goes: {\"ok\": true, \"locations\": [line...], ...} or
              {\"ok\": false, \"message\": ..., \"line\": ..., \"column\": ...}";

/// The compiler recurses deeply; the stack of a main thread is too small for large kernels.
const STACK_BYTES: usize = 256 << 20;

struct Arguments {
    port: PathBuf,
    instance: PathBuf,
    arch: String,
    bytecode: PathBuf,
    result: PathBuf,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Compiled {
        ok: bool,
        #[serde(flatten)]
        facts: &'a compile::Facts,
    },
    Refused {
        ok: bool,
        #[serde(flatten)]
        failure: &'a Failure,
    },
}

fn main() -> ExitCode {
    forget_environment();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("tilebuild-driver: {message}");
            ExitCode::from(2)
        }
    }
}

/// The compiler reads these variables; what it answers may depend on declared inputs only.
fn forget_environment() {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CUTILE_") || text.starts_with("CUDA_RUST_") || text == "TILE_IR_DUMP" {
            // SAFETY: no other thread exists yet.
            unsafe { std::env::remove_var(&name) };
        }
    }
}

fn run() -> Result<(), String> {
    let arguments = arguments()?;
    let text = read(&arguments.port)?;
    let instance: Instance = serde_json::from_str(&read(&arguments.instance)?)
        .map_err(|error| format!("{}: {error}", arguments.instance.display()))?;
    let outcome = compile_apart(text, instance, arguments.arch);
    let (bytecode, answer) = match &outcome {
        Ok(Compiled { bytecode, facts }) => (bytecode.as_slice(), Answer::Compiled { ok: true, facts }),
        Err(failure) => (&[][..], Answer::Refused { ok: false, failure }),
    };
    write(&arguments.bytecode, bytecode)?;
    let answer = serde_json::to_vec(&answer).map_err(|error| error.to_string())?;
    write(&arguments.result, &answer)
}

/// Compiles in a thread of its own: for its stack, and because the compiler panics on some wrong programs.
fn compile_apart(text: String, instance: Instance, arch: String) -> Result<Compiled, Failure> {
    std::panic::set_hook(Box::new(|_| {})); // the message reaches the result instead of standard error
    let thread =
        thread::Builder::new().stack_size(STACK_BYTES).spawn(move || compile::compile(&text, &instance, &arch));
    let joined = match thread {
        Ok(handle) => handle.join(),
        Err(error) => return Err(Failure::unlocated(format!("no thread for the compiler: {error}"))),
    };
    joined.unwrap_or_else(|panic| {
        let text =
            panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(Failure::unlocated(format!("the cutile compiler panicked: {}", text.as_deref().unwrap_or("no message"))))
    })
}

fn arguments() -> Result<Arguments, String> {
    let mut values = [None, None, None, None, None];
    const NAMES: [&str; 5] = ["--port", "--instance", "--arch", "--bytecode", "--result"];
    let mut rest = std::env::args().skip(1);
    while let Some(name) = rest.next() {
        if name == "--help" {
            println!("{USAGE}");
            std::process::exit(0);
        }
        let index =
            NAMES.iter().position(|known| *known == name).ok_or_else(|| format!("unknown argument {name}\n{USAGE}"))?;
        values[index] = Some(rest.next().ok_or_else(|| format!("{name} needs a value\n{USAGE}"))?);
    }
    let [Some(port), Some(instance), Some(arch), Some(bytecode), Some(result)] = values else {
        return Err(format!("missing argument\n{USAGE}"));
    };
    Ok(Arguments {
        port: port.into(),
        instance: instance.into(),
        arch,
        bytecode: bytecode.into(),
        result: result.into(),
    })
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, data: &[u8]) -> Result<(), String> {
    fs::write(path, data).map_err(|error| format!("{}: {error}", path.display()))
}
