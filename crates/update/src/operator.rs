//! The operators at the leaves of the tree: how each changes the value at its path, or creates it.

use super::add_to_set::AddToSet;
use super::arithmetic::Arithmetic;
use super::bit::Bit;
use super::pull::Pull;
use super::push::Push;
use super::rename;
use super::target::{UpdateRun, UpdateTarget, levels};
use super::write::{timestamp_of, write_element, write_header};
use document::{Collation, Element, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use std::cmp::Ordering;
use steps::Counted;
use values::text;

/// The outcome of changing an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementOutcome {
    /// Unchanged; nothing was written.
    Unchanged,
    /// The new element was written.
    Changed,
    /// Removed; nothing was written.
    Removed,
}

#[derive(Clone, Debug)]
pub(super) enum Operator {
    Set(Operand),
    SetOnInsert(Operand),
    Unset,
    Arithmetic(Arithmetic),
    /// `$min` and `$max`: the operand replaces a value that compares to it this way.
    Extreme {
        replaces: Ordering,
        operand: Operand,
        collation: Collation,
    },
    /// `$rename` at its target; the value is read from `source`.
    Rename {
        source: Box<str>,
    },
    /// `$rename` at its source, which it removes.
    RenameSource,
    CurrentDate,
    CurrentTimestamp,
    Push(Box<Push>),
    AddToSet(Box<AddToSet>),
    Pull(Box<Pull>),
    Pop {
        first: bool,
    },
    Bit(Bit),
}

/// A value from the update, and its levels of nesting.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub value: ValueBuf,
    pub levels: usize,
}

impl Operand {
    pub fn new(value: Value<'_>) -> Self {
        Operand { value: value.to_owned(), levels: levels(value) }
    }

    /// Writes an element with this value.
    fn write(&self, key: &[u8], target: &UpdateTarget<'_>, out: &mut Vec<u8>) -> Result<()> {
        target.check_depth(self.levels)?;
        write_element(key, self.value.as_value(), out);
        Ok(())
    }
}

impl Operator {
    /// Changes the existing `element`.
    pub fn change(
        &self,
        element: Element<'_>,
        target: &UpdateTarget<'_>,
        run: &UpdateRun<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ElementOutcome> {
        let key = element.key_bytes();
        steps::bytes(element.raw_value().len());
        let changed = match self {
            Operator::SetOnInsert(_) if !run.is_upsert => false,
            Operator::Set(operand) | Operator::SetOnInsert(operand) => {
                let value_at = out.len() + 1 + key.len() + 1;
                operand.write(key, target, out)?;
                operand.value.kind() != element.kind || &out[value_at..] != element.raw_value()
            }
            Operator::Unset | Operator::RenameSource => return Ok(ElementOutcome::Removed),
            Operator::Arithmetic(arithmetic) => arithmetic.change(element, target, run, out)?,
            Operator::Extreme { replaces, operand, collation } => {
                let replaced = collation.compare(operand.value.as_value(), element.value()) == *replaces;
                if replaced {
                    operand.write(key, target, out)?;
                }
                replaced
            }
            Operator::Rename { source } => rename::write_source_value(source, key, target, run, out)?,
            Operator::CurrentDate | Operator::CurrentTimestamp => {
                write_element(key, self.now(run), out);
                true
            }
            Operator::Push(push) => push.change(element, target, run, out)?,
            Operator::AddToSet(add) => add.change(element, target, out)?,
            Operator::Pull(pull) => pull.change(element, out)?,
            Operator::Pop { first } => change_pop(*first, element, target, out)?,
            Operator::Bit(bit) => bit.change(element, target, run, out)?,
        };
        Ok(if changed { ElementOutcome::Changed } else { ElementOutcome::Unchanged })
    }

    /// Writes a new element; returns `false` for operators that only change existing ones.
    pub fn create(&self, key: &str, target: &UpdateTarget<'_>, run: &UpdateRun<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let key = key.as_bytes();
        match self {
            Operator::SetOnInsert(_) if !run.is_upsert => return Ok(false),
            Operator::Set(operand) | Operator::SetOnInsert(operand) | Operator::Extreme { operand, .. } => {
                operand.write(key, target, out)?;
            }
            Operator::Arithmetic(arithmetic) => write_element(key, arithmetic.initial_value().as_value(), out),
            Operator::Rename { source } => return rename::write_source_value(source, key, target, run, out),
            Operator::CurrentDate | Operator::CurrentTimestamp => write_element(key, self.now(run), out),
            Operator::Push(push) => push.create(key, target, out)?,
            Operator::AddToSet(add) => add.create(key, target, out)?,
            Operator::Bit(bit) => write_element(key, bit.initial_value(), out),
            Operator::Unset | Operator::RenameSource | Operator::Pull(_) | Operator::Pop { .. } => return Ok(false),
        }
        Ok(true)
    }

    /// Reports that the path cannot exist: `value`, at `parent`, can have no field `name`. `target`
    /// is the operator's own path.
    pub fn reject_path(
        &self,
        name: &str,
        target: &UpdateTarget<'_>,
        parent: &UpdateTarget<'_>,
        value: Value<'_>,
        run: &UpdateRun<'_>,
    ) -> Result<()> {
        let named = text::element(parent.name, value);
        let message = match self {
            Operator::Unset | Operator::RenameSource => return Ok(()),
            Operator::SetOnInsert(_) if !run.is_upsert => return Ok(()),
            Operator::Rename { source } => {
                if rename::find_source(source, run)?.is_none() {
                    return Ok(());
                }
                if let Some(inside) = parent.ancestors().find(|target| target.in_array) {
                    return Err(rename::target_in_array(target, inside.parent.map_or("", |array| array.name), run));
                }
                if let Value::Array(_) = value {
                    return Err(rename::target_in_array(target, parent.name, run));
                }
                format!("Cannot create field '{name}' in element {{{named}}}")
            }
            Operator::Pull(_) | Operator::Pop { .. } => {
                format!("Cannot use the part ({name}) of ({target}) to traverse the element ({{{named}}})")
            }
            _ => format!("Cannot create field '{name}' in element {{{named}}}"),
        };
        Err(Error::new(Code::PATH_NOT_VIABLE, message))
    }

    fn now(&self, run: &UpdateRun<'_>) -> Value<'static> {
        match self {
            Operator::CurrentTimestamp => timestamp_of(run.now_ms),
            _ => Value::DateTime(run.now_ms),
        }
    }
}

/// `$pop`: removes the first or the last element of an array.
fn change_pop(first: bool, element: Element<'_>, target: &UpdateTarget<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let Value::Array(array) = element.value() else {
        let kind = element.kind.alias();
        return Err(Error::type_mismatch(format!("Path '{target}' contains an element of non-array type '{kind}'")));
    };
    let count = array.elements().counted().count();
    if count == 0 {
        return Ok(false);
    }
    write_header(out, Kind::Array, element.key_bytes());
    let mut writer = document::ArrayWriter::begin(out);
    let kept = array.elements().counted().skip(usize::from(first)).take(count - 1);
    kept.for_each(|element| writer.push_raw(element.kind, element.raw_value()));
    Ok(true)
}
