//! From source text to the module that the compiler takes, and from its errors to places in that text.

use std::collections::HashSet;

use cutile_compiler::ast::{Module, SourceLocation, SpanBase};
use cutile_compiler::error::JITError;
use serde::Serialize;
use syn::spanned::Spanned;
use syn::{Item, ItemMod, UseTree};

/// The name under which the text appears in locations, wherever the file lies.
pub const FILE: &str = "port.rs";

/// The crate that the text stands for: what `crate::` and `super::` in it mean.
const CRATE: &str = "port";

/// Why the kernel did not compile. Lines and columns count from 1; 0 is unknown.
#[derive(Debug, Serialize)]
pub struct Failure {
    pub message: String,
    pub line: usize,
    pub column: usize,
}

impl Failure {
    pub fn unlocated(message: impl Into<String>) -> Self {
        Self { message: message.into(), line: 0, column: 0 }
    }

    fn at(message: impl Into<String>, span: proc_macro2::Span) -> Self {
        let start = span.start();
        Self { message: message.into(), line: start.line, column: start.column + 1 }
    }

    fn located(message: String, location: &SourceLocation) -> Self {
        if location.is_known() && location.file == FILE {
            Self { message, line: location.line, column: location.column + 1 }
        } else {
            Self::unlocated(message)
        }
    }
}

impl From<JITError> for Failure {
    fn from(error: JITError) -> Self {
        match error {
            JITError::Located(message, location) => Self::located(message, &location),
            JITError::Generic(message) => Self::unlocated(message),
            JITError::Anyhow(error) => match error.downcast::<JITError>() {
                Ok(inner) => inner.into(),
                Err(other) => Self::unlocated(format!("{other:#}")),
            },
        }
    }
}

/// The module `name` of the text, with the items of every other module of the text that it imports.
///
/// The compiler finds imported modules in a table made by the linker, where a text read at run time cannot appear; so the
/// imported items move into the importing module. All spans stay those of the one text.
pub fn module(text: &str, name: &str) -> Result<Module, Failure> {
    let file = syn::parse_file(text).map_err(|error| Failure::at(error.to_string(), error.span()))?;
    let modules: Vec<ItemMod> = file
        .items
        .into_iter()
        .filter_map(|item| match item {
            Item::Mod(module) if module.content.is_some() => Some(module),
            _ => None,
        })
        .collect();
    let mut kernel = modules
        .iter()
        .find(|module| module.ident == name)
        .cloned()
        .ok_or_else(|| Failure::unlocated(format!("the source has no module `{name}`")))?;
    merge_imports(&mut kernel, &modules)?;
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let mut module = Module::with_span_base(name, kernel, SpanBase::new(FILE.to_owned(), 1, 0));
    module.set_absolute_path(format!("{CRATE}::{name}"));
    Ok(module)
}

fn merge_imports(kernel: &mut ItemMod, modules: &[ItemMod]) -> Result<(), Failure> {
    let mut merged = HashSet::from([kernel.ident.to_string()]);
    let mut names = HashSet::new();
    for item in items(kernel) {
        names.extend(item_name(item));
    }
    let mut pending = imported_siblings(kernel, modules);
    while let Some(sibling) = pending.pop() {
        if !merged.insert(sibling.ident.to_string()) {
            continue;
        }
        pending.extend(imported_siblings(sibling, modules));
        for item in items(sibling) {
            if let Some(name) = item_name(item)
                && !names.insert(name.clone())
            {
                let message = format!("`{name}` is defined in `{}` and in a module that uses it", sibling.ident);
                return Err(Failure::at(message, item.span()));
            }
            if let Some((_, content)) = &mut kernel.content {
                content.push(item.clone());
            }
        }
    }
    Ok(())
}

fn items(module: &ItemMod) -> &[Item] {
    module.content.as_ref().map_or(&[], |(_, items)| items)
}

fn item_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Fn(item) => &item.sig.ident,
        Item::Const(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Mod(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The modules of the text that `module` names in its `use` items, as `super::x` or `crate::x`.
fn imported_siblings<'a>(module: &ItemMod, modules: &'a [ItemMod]) -> Vec<&'a ItemMod> {
    let imported = items(module).iter().filter_map(|item| match item {
        Item::Use(item) => sibling_of(&item.tree),
        _ => None,
    });
    imported.filter_map(|name| modules.iter().find(|other| other.ident == name)).collect()
}

fn sibling_of(tree: &UseTree) -> Option<String> {
    let UseTree::Path(outer) = tree else { return None };
    if outer.ident != "super" && outer.ident != "crate" {
        return None;
    }
    match &*outer.tree {
        UseTree::Path(inner) => Some(inner.ident.to_string()),
        _ => None,
    }
}
