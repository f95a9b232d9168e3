//! Walks the tree of operators beside the document. Fields that no operator touches are copied as
//! bytes, in runs as long as possible.

use super::operator::{ElementOutcome, Operator};
use super::target::{UpdateRun, UpdateTarget, array_index};
use super::tree::{self, FieldNodes, SelectedElements, UpdateNode, compare_name_bytes, compare_names};
use super::write::write_header;
use document::{Doc, Element, Kind, Value};
use error::{Code, Error, Result};
use smallvec::SmallVec;
use steps::Counted;
use values::text;

/// Maximal number of nulls that a `$set` past the end of an array may add.
const PADDING_MAX: usize = 1_500_000;

/// Up to this many branches are searched linearly; more are searched by bisection.
const LINEAR_SEARCH_MAX: usize = 8;

/// A child of the tree that applies here.
struct Branch<'n> {
    name: &'n str,
    node: &'n UpdateNode,
    done: bool,
}

type Branches<'n> = SmallVec<[Branch<'n>; 6]>;

/// Appends the changed document to `out`. Returns `false`, and writes nothing, if nothing changes.
///
/// The walk follows the document, so with several errors it may find another one first than a walk
/// along the tree would. MongoDB reports the first in the tree's order, so a failed update is
/// walked again in that order.
pub(super) fn change_root(tree: &FieldNodes, run: &UpdateRun<'_>, out: &mut Vec<u8>) -> Result<bool> {
    change_fields(tree, run.root, None, run, out).map_err(|error| {
        let run = UpdateRun { in_tree_order: true, ..*run };
        change_fields(tree, run.root, None, &run, &mut Vec::new()).err().unwrap_or(error)
    })
}

fn change_fields(
    fields: &FieldNodes,
    document: Doc<'_>,
    target: Option<&UpdateTarget<'_>>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let mut merged = None;
    let mut branches = branches(fields, target, run, &mut merged)?;
    if run.in_tree_order {
        return check_in_tree_order(&branches, document, target, run);
    }
    change_document(&mut branches, document, target, run, out)
}

/// Applies the branches in the tree's order to find their first error; discards the output.
fn check_in_tree_order(
    branches: &Branches<'_>,
    document: Doc<'_>,
    target: Option<&UpdateTarget<'_>>,
    run: &UpdateRun<'_>,
) -> Result<bool> {
    let (mut dropped, mut changed) = (Vec::new(), false);
    for branch in branches {
        steps::step();
        // Account for the fields that are skipped.
        steps::bytes(document.size() / 16);
        let target = UpdateTarget::below(target, branch.name, false);
        changed |= match document.element(branch.name) {
            Some(element) => {
                dropped.clear();
                let outcome = change_element(branch.node, element, &target, run, &mut dropped)?;
                if outcome != ElementOutcome::Unchanged && branch.name == "_id" {
                    let run = UpdateRun { in_tree_order: false, ..*run };
                    dropped.clear();
                    change_element(branch.node, element, &target, &run, &mut dropped)?;
                    check_id(&target, &dropped, &run)?;
                }
                outcome != ElementOutcome::Unchanged
            }
            None => create_element(branch.node, branch.name, &target, run, &mut dropped)?,
        };
    }
    Ok(changed)
}

/// Fails if the document's `_id` would be replaced by one with new fields. Changes to its existing
/// fields are rejected elsewhere, when they are applied.
fn check_id(target: &UpdateTarget<'_>, written: &[u8], run: &UpdateRun<'_>) -> Result<()> {
    if target.parent.is_some() || target.name != "_id" || run.is_id_undetermined {
        return Ok(());
    }
    let nested = written.get("?_id?".len()..).and_then(Doc::from_prefix).unwrap_or(Doc::EMPTY);
    let changed = text::element("_id", Value::Document(nested));
    Err(Error::new(
        Code::IMMUTABLE_FIELD,
        format!("Updating the path '_id' to {changed} would modify the immutable field '_id'"),
    ))
}

/// Returns the children that apply, including the one of `$`, in order.
fn branches<'n>(
    fields: &'n FieldNodes,
    target: Option<&UpdateTarget<'_>>,
    run: &'n UpdateRun<'_>,
    merged: &'n mut Option<UpdateNode>,
) -> Result<Branches<'n>> {
    let mut branches: Branches<'n> =
        fields.children.iter().counted().map(|(name, node)| Branch { name, node, done: false }).collect();
    if let Some(positional) = &fields.positional {
        let index = run
            .matched_index
            .ok_or_else(|| Error::bad_value("The positional operator did not find the match needed from the query."))?;
        match branches.binary_search_by(|branch| compare_names(branch.name, index)) {
            Ok(position) => {
                let at = UpdateTarget::below(target, index, true).to_string();
                branches[position].node = merged.insert(tree::merge_nodes(branches[position].node, positional, &at)?);
            }
            Err(position) => branches.insert(position, Branch { name: index, node: positional, done: false }),
        }
    }
    Ok(branches)
}

fn change_document(
    branches: &mut Branches<'_>,
    document: Doc<'_>,
    target: Option<&UpdateTarget<'_>>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let bytes = document.as_bytes();
    let start = out.len();
    let (mut copied, mut offset) = (0, 4);
    let (mut open, mut changed) = (branches.len(), false);
    for element in document.elements() {
        steps::step();
        if open == 0 {
            break;
        }
        let end = offset + element_size(element);
        if let Some(branch) = find_branch(branches, element.key_bytes()) {
            branch.done = true;
            open -= 1;
            out.extend_from_slice(&bytes[copied..offset]);
            copied = offset;
            let target = UpdateTarget::below(target, branch.name, false);
            let written = out.len();
            if change_element(branch.node, element, &target, run, out)? != ElementOutcome::Unchanged {
                check_id(&target, &out[written..], run)?;
                copied = end;
                changed = true;
            }
        }
        offset = end;
    }
    out.extend_from_slice(&bytes[copied..bytes.len() - 1]);
    for branch in branches.iter().counted().filter(|branch| !branch.done) {
        let target = UpdateTarget::below(target, branch.name, false);
        changed |= create_element(branch.node, branch.name, &target, run, out)?;
    }
    Ok(close_document(out, start, changed))
}

/// Returns the branch of a key, the first time the key occurs.
fn find_branch<'b, 'n>(branches: &'b mut Branches<'n>, key: &[u8]) -> Option<&'b mut Branch<'n>> {
    if branches.len() <= LINEAR_SEARCH_MAX {
        return branches.iter_mut().find(|branch| branch.name.as_bytes() == key && !branch.done);
    }
    let index = branches.binary_search_by(|branch| compare_name_bytes(branch.name.as_bytes(), key)).ok()?;
    Some(&mut branches[index]).filter(|branch| !branch.done)
}

/// Closes a document or array begun at `start`, or truncates `out` to it if nothing in it changed.
/// Returns `changed`.
fn close_document(out: &mut Vec<u8>, start: usize, changed: bool) -> bool {
    if !changed {
        out.truncate(start);
        return false;
    }
    out.push(0);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    true
}

fn element_size(element: Element<'_>) -> usize {
    1 + element.key_bytes().len() + 1 + element.raw_value().len()
}

fn change_element(
    node: &UpdateNode,
    element: Element<'_>,
    target: &UpdateTarget<'_>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<ElementOutcome> {
    let start = out.len();
    let changed = match (node, element.value()) {
        (UpdateNode::Vacant, _) => false,
        (UpdateNode::Leaf(operator), _) => return change_leaf(operator, element, target, run, out),
        (UpdateNode::Fields(fields), Value::Document(document)) => {
            write_header(out, Kind::Document, element.key_bytes());
            change_fields(fields, document, Some(target), run, out)?
        }
        (UpdateNode::Fields(fields), Value::Array(array)) => {
            write_header(out, Kind::Array, element.key_bytes());
            change_positions(fields, array, target, run, out)?
        }
        (UpdateNode::Fields(fields), scalar) => {
            let mut merged = None;
            for branch in branches(fields, Some(target), run, &mut merged)? {
                steps::step();
                reject_branch(branch.node, branch.name, target, scalar, run)?;
            }
            false
        }
        (UpdateNode::Elements(elements), Value::Array(array)) => {
            write_header(out, Kind::Array, element.key_bytes());
            change_selected(elements, array, target, run, out)?
        }
        (UpdateNode::Elements(_), other) => {
            return Err(Error::bad_value(format!(
                "Cannot apply array updates to non-array element {}",
                text::element(target.name, other)
            )));
        }
    };
    if changed {
        return Ok(ElementOutcome::Changed);
    }
    out.truncate(start);
    Ok(ElementOutcome::Unchanged)
}

fn change_leaf(
    operator: &Operator,
    element: Element<'_>,
    target: &UpdateTarget<'_>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<ElementOutcome> {
    let start = out.len();
    let outcome = operator.change(element, target, run, out)?;
    match outcome {
        ElementOutcome::Unchanged => {
            out.truncate(start);
            return Ok(outcome);
        }
        ElementOutcome::Changed => check_root_name(target, run)?,
        ElementOutcome::Removed => {}
    }
    if target.root_name() == "_id" && !run.is_id_undetermined {
        return Err(Error::new(
            Code::IMMUTABLE_FIELD,
            format!("Performing an update on the path '{target}' would modify the immutable field '_id'"),
        ));
    }
    if outcome == ElementOutcome::Removed && target.in_array {
        if element.kind == Kind::Null {
            return Ok(ElementOutcome::Unchanged);
        }
        write_header(out, Kind::Null, element.key_bytes());
        return Ok(ElementOutcome::Changed);
    }
    Ok(outcome)
}

/// Fails if a top-level field begins with `$`.
fn check_root_name(target: &UpdateTarget<'_>, run: &UpdateRun<'_>) -> Result<()> {
    let name = target.root_name();
    if name.starts_with('$') && !run.is_upsert { Err(super::replace::dollar_field_error(name)) } else { Ok(()) }
}

// --- fields that do not exist yet

/// Writes the element `name`, if an operator in `node` creates one. Returns whether it did.
fn create_element(
    node: &UpdateNode,
    name: &str,
    target: &UpdateTarget<'_>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let start = out.len();
    let created = match node {
        UpdateNode::Vacant => false,
        UpdateNode::Leaf(operator) => {
            let created = operator.create(name, target, run, out)?;
            if created {
                check_root_name(target, run)?;
            }
            created
        }
        UpdateNode::Fields(fields) => {
            write_header(out, Kind::Document, name.as_bytes());
            change_fields(fields, Doc::EMPTY, Some(target), run, out)?
        }
        UpdateNode::Elements(_) => {
            return Err(Error::bad_value(format!(
                "The path '{target}' must exist in the document in order to apply array updates."
            )));
        }
    };
    if !created {
        out.truncate(start);
    }
    Ok(created)
}

/// Reports a branch below a value that can have no field `name`. Most operators fail.
fn reject_branch(
    node: &UpdateNode,
    name: &str,
    parent: &UpdateTarget<'_>,
    value: Value<'_>,
    run: &UpdateRun<'_>,
) -> Result<()> {
    reject_below(node, name, &UpdateTarget::below(Some(parent), name, false), parent, value, run)
}

fn reject_below(
    node: &UpdateNode,
    name: &str,
    target: &UpdateTarget<'_>,
    parent: &UpdateTarget<'_>,
    value: Value<'_>,
    run: &UpdateRun<'_>,
) -> Result<()> {
    match node {
        UpdateNode::Vacant => Ok(()),
        UpdateNode::Leaf(operator) => operator.reject_path(name, target, parent, value, run),
        UpdateNode::Fields(fields) => {
            let mut merged = None;
            for branch in branches(fields, Some(target), run, &mut merged)? {
                steps::step();
                reject_below(
                    branch.node,
                    name,
                    &UpdateTarget::below(Some(target), branch.name, false),
                    parent,
                    value,
                    run,
                )?;
            }
            Ok(())
        }
        UpdateNode::Elements(_) => Err(Error::bad_value(format!(
            "The path '{target}' must exist in the document in order to apply array updates."
        ))),
    }
}

// --- arrays

/// Changes elements of an array by position; fills positions past its end with nulls.
fn change_positions(
    fields: &FieldNodes,
    array: Doc<'_>,
    target: &UpdateTarget<'_>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let mut merged = None;
    let branches = branches(fields, Some(target), run, &mut merged)?;
    if run.in_tree_order {
        return check_positions_in_tree_order(&branches, array, target, run);
    }
    let mut positions: SmallVec<[(usize, &Branch<'_>); 6]> = SmallVec::new();
    for branch in &branches {
        steps::step();
        match array_index(branch.name) {
            Some(index) => positions.push((index, branch)),
            None => reject_branch(branch.node, branch.name, target, Value::Array(array), run)?,
        }
    }
    positions.sort_by_key(|(index, _)| {
        steps::step();
        *index
    });
    let (unique, repeated) = split_repeated(&positions);
    let start = out.len();
    let mut changed = change_array(&unique, array, target, run, out)?;
    if !repeated.is_empty() {
        // Two encodings of one position (`1` and `01`): the second change applies to the result of
        // the first.
        let first: Vec<u8> = if changed { out.split_off(start) } else { array.as_bytes().to_vec() };
        let repeated_changed = change_array(&repeated, Doc::from_bytes(&first).unwrap_or(array), target, run, out)?;
        if changed && !repeated_changed {
            out.extend_from_slice(&first);
        }
        changed |= repeated_changed;
    }
    Ok(changed)
}

/// Like [`check_in_tree_order`], for an array.
fn check_positions_in_tree_order(
    branches: &Branches<'_>,
    array: Doc<'_>,
    target: &UpdateTarget<'_>,
    run: &UpdateRun<'_>,
) -> Result<bool> {
    let (mut dropped, mut changed) = (Vec::new(), false);
    let length = array.elements().counted().count();
    for branch in branches {
        steps::step();
        let below = UpdateTarget::below(Some(target), branch.name, true);
        let Some(index) = array_index(branch.name) else {
            reject_branch(branch.node, branch.name, target, Value::Array(array), run)?;
            continue;
        };
        changed |= match array.elements().counted().nth(index) {
            Some(element) => {
                change_element(branch.node, element, &below, run, &mut dropped)? != ElementOutcome::Unchanged
            }
            None => {
                let created = create_element(branch.node, branch.name, &below, run, &mut dropped)?;
                if created {
                    check_padding(length, index)?;
                }
                created
            }
        };
    }
    Ok(changed)
}

type Positions<'a, 'n> = SmallVec<[(usize, &'a Branch<'n>); 6]>;

fn split_repeated<'a, 'n>(positions: &Positions<'a, 'n>) -> (Positions<'a, 'n>, Positions<'a, 'n>) {
    let (mut first, mut repeated) = (Positions::new(), Positions::new());
    for &(index, branch) in positions {
        let known = first.last().is_some_and(|&(last, _)| last == index);
        if known { repeated.push((index, branch)) } else { first.push((index, branch)) }
    }
    (first, repeated)
}

fn change_array(
    positions: &Positions<'_, '_>,
    array: Doc<'_>,
    target: &UpdateTarget<'_>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let bytes = array.as_bytes();
    let start = out.len();
    let (mut copied, mut offset, mut changed) = (0, 4, false);
    let mut open = positions.iter().peekable();
    let mut length = 0;
    for element in array.elements() {
        steps::step();
        let end = offset + element_size(element);
        if let Some((_, branch)) = open.next_if(|(index, _)| *index == length) {
            out.extend_from_slice(&bytes[copied..offset]);
            copied = offset;
            let target = UpdateTarget::below(Some(target), branch.name, true);
            if change_element(branch.node, element, &target, run, out)? != ElementOutcome::Unchanged {
                copied = end;
                changed = true;
            }
        }
        offset = end;
        length += 1;
    }
    out.extend_from_slice(&bytes[copied..bytes.len() - 1]);
    for &&(index, branch) in open.by_ref().collect::<SmallVec<[_; 6]>>().iter() {
        steps::step();
        let before = out.len();
        let target = UpdateTarget::below(Some(target), branch.name, true);
        let mut key = itoa::Buffer::new();
        // Only creating the element shows whether there is one: create it, then move it after the
        // padding.
        if create_element(branch.node, key.format(index), &target, run, out)? {
            let element = out.split_off(before);
            fill_with_nulls(length, index, out)?;
            out.extend_from_slice(&element);
            length = index + 1;
            changed = true;
        }
    }
    Ok(close_document(out, start, changed))
}

fn check_padding(from: usize, to: usize) -> Result<()> {
    if to.saturating_sub(from) > PADDING_MAX {
        return Err(Error::new(Code(34), format!("can't backfill more than {PADDING_MAX} elements")));
    }
    Ok(())
}

fn fill_with_nulls(from: usize, to: usize, out: &mut Vec<u8>) -> Result<()> {
    check_padding(from, to)?;
    let mut key = itoa::Buffer::new();
    for index in from..to {
        steps::step();
        write_header(out, Kind::Null, key.format(index).as_bytes());
    }
    Ok(())
}

/// Changes the elements of an array that match the filters of `$[identifier]`.
fn change_selected(
    elements: &SelectedElements,
    array: Doc<'_>,
    target: &UpdateTarget<'_>,
    run: &UpdateRun<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let bytes = array.as_bytes();
    let start = out.len();
    let (mut copied, mut offset, mut changed) = (0, 4, false);
    let mut wrapped = Vec::new();
    for (index, element) in array.elements().enumerate() {
        steps::step();
        let end = offset + element_size(element);
        let mut key = itoa::Buffer::new();
        let target = UpdateTarget::below(Some(target), key.format(index), true);
        let mut chosen: SmallVec<[&UpdateNode; 4]> = SmallVec::new();
        for (identifier, node) in &elements.by_identifier {
            steps::step();
            if !run.filters.selects(identifier, element, &mut wrapped)? {
                continue;
            }
            chosen.push(node);
        }
        let merged = match chosen.as_slice() {
            [] | [_] => None,
            several => Some(tree::merge_all(several, &target.to_string())?),
        };
        if let Some(node) = merged.as_ref().or(chosen.first().copied()) {
            out.extend_from_slice(&bytes[copied..offset]);
            copied = offset;
            if change_element(node, element, &target, run, out)? != ElementOutcome::Unchanged {
                copied = end;
                changed = true;
            }
        }
        offset = end;
    }
    out.extend_from_slice(&bytes[copied..bytes.len() - 1]);
    Ok(close_document(out, start, changed))
}
