//! `$group`: groups documents by a key, and accumulates values per key.

use super::accumulate::{Accumulator, AccumulatorState, Engine, hash_of, spill};
use super::boundaries::Boundaries;
use super::flow::{BlockingStage, Consumer, DocumentSource};
use super::flow::{Demand, Pacer};
use super::operand::{GatheredFields, Numbering, Operand, Row};
use document::{Collation, Doc, DocBuf, DocWriter, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::HashTable;
use query::expression::second_engine;
use query::{Context, Expression, Item};
use std::sync::Arc;
use steps::Counted;
use values::spill::{Budget, Entry, MergedRuns, Runs};

/// Approximate overhead of a group besides its key and its states, in bytes.
const GROUP_BYTES: usize = 64;

#[derive(Debug)]
pub(crate) struct Group {
    key: Key,
    fields: Vec<(Box<str>, Accumulator)>,
    collation: Collation,
    numbering: Numbering,
    /// Paths of the key that have the value of a field: new path, old name.
    renames: Vec<(String, String)>,
}

/// The key of the groups.
#[derive(Debug)]
enum Key {
    /// One group for all, and whether MongoDB's second engine has all operators that computed the
    /// key.
    Constant(ValueBuf, bool),
    Computed(Operand),
    /// `$bucket`: the lower boundary of the bucket.
    Bucket(Operand, Boundaries, Engine),
}

impl Group {
    pub fn parse(spec: Value<'_>, context: &Context) -> Result<Group> {
        let Value::Document(spec) = spec else {
            return Err(Error::new(Code(15947), "a group's fields must be specified in an object"));
        };
        let (mut key, mut fields, mut renames) = (None, Vec::new(), Vec::new());
        for (name, value) in spec.iter().counted() {
            if name == "_id" {
                if key.is_some() {
                    return Err(Error::new(Code(15948), "a group's _id may only be specified once"));
                }
                key = Some(Self::parse_key(value, context)?);
                find_renames("_id", value, &mut renames);
            } else {
                fields.push((name.into(), parse_field(name, value, context)?));
            }
        }
        let key = key.ok_or_else(|| Error::new(Code(15955), "a group specification must include an _id"))?;
        Ok(Group { renames, ..Group::new(key, fields, context) })
    }

    fn new(mut key: Key, mut fields: Vec<(Box<str>, Accumulator)>, context: &Context) -> Group {
        let mut numbering = Numbering::default();
        if let Key::Computed(operand) | Key::Bucket(operand, ..) = &mut key {
            numbering.assign_number(operand);
        }
        fields
            .iter_mut()
            .filter_map(|(_, accumulator)| accumulator.operand_mut())
            .for_each(|operand| numbering.assign_number(operand));
        Group { key, fields, collation: context.collation.clone(), numbering, renames: Vec::new() }
    }

    fn parse_key(value: Value<'_>, context: &Context) -> Result<Key> {
        check_key(value)?;
        let expression = Expression::parse(value, context)?;
        if let Some(constant) = expression.as_literal() {
            return Ok(Key::Constant(constant.to_owned(), expression.is_supported_by_second_engine()));
        }
        Ok(Key::Computed(match null_key(value) {
            Some(document) => Operand::parse(Value::Document(document.as_doc()), context)?,
            None => Operand::parse(value, context)?,
        }))
    }

    /// Returns the stage that `$bucket` is translated into.
    pub fn by_boundaries(
        group_by: Value<'_>,
        boundaries: Boundaries,
        output: Doc<'_>,
        context: &Context,
    ) -> Result<Group> {
        let fields = parse_fields(output, context)?;
        let key = Key::Bucket(Operand::parse(group_by, context)?, boundaries, Engine::First);
        Ok(Group::new(key, fields, context))
    }

    /// Returns the stage that `$sortByCount` is translated into.
    pub fn for_sort_by_count(by: Value<'_>, context: &Context) -> Result<Group> {
        let fields = vec![("count".into(), Accumulator::count())];
        let mut renames = Vec::new();
        find_renames("_id", by, &mut renames);
        Ok(Group { renames, ..Group::new(Self::parse_key(by, context)?, fields, context) })
    }

    /// Returns whether MongoDB's second engine has everything that the stage uses.
    pub fn is_supported_by_second_engine(&self) -> bool {
        let key = match &self.key {
            Key::Constant(_, known) => *known,
            Key::Computed(operand) | Key::Bucket(operand, ..) => operand.is_supported_by_second_engine(),
        };
        key && self.fields.iter().all(|(_, accumulator)| accumulator.is_supported_by_second_engine())
    }

    /// Returns whether a value that the stage computes depends on the documents.
    pub fn reads_documents(&self) -> bool {
        let key = match &self.key {
            Key::Constant(..) => false,
            Key::Computed(operand) | Key::Bucket(operand, ..) => operand.reads_document(),
        };
        key || self.fields.iter().any(|(_, accumulator)| accumulator.operand().is_some_and(Operand::reads_document))
    }

    pub fn use_second_engine(&mut self) {
        match &mut self.key {
            Key::Constant(..) => {}
            Key::Computed(operand) => operand.use_second_engine(),
            Key::Bucket(operand, _, engine) => {
                operand.use_second_engine();
                *engine = Engine::Second;
            }
        }
        self.fields.iter_mut().for_each(|(_, accumulator)| accumulator.use_second_engine());
    }

    pub fn renames(&self) -> &[(String, String)] {
        &self.renames
    }
}

/// Finds the parts of a key that are plain top-level fields.
fn find_renames(path: &str, key: Value<'_>, renames: &mut Vec<(String, String)>) {
    match key {
        Value::String(field) => {
            let name = field.strip_prefix('$').filter(|name| !name.contains(['$', '.']));
            renames.extend(name.map(|name| (path.to_owned(), name.to_owned())));
        }
        Value::Document(parts) if parts.first().is_some_and(|first| !first.key().starts_with('$')) => {
            parts.iter().counted().for_each(|(name, part)| find_renames(&format!("{path}.{name}"), part, renames));
        }
        _ => {}
    }
}

/// Returns the null document of a key with one field: it keeps the field if its value is missing; a
/// key of several fields drops it.
fn null_key(key: Value<'_>) -> Option<DocBuf> {
    let key = key.as_document()?;
    let only = key.first().filter(|only| !only.key().starts_with('$') && key.elements().nth(1).is_none())?;
    Some(DocBuf::build(|writer| {
        let mut or_null = writer.document(only.key());
        let mut parts = or_null.array("$ifNull");
        parts.push(only.value());
        parts.push(Value::Null);
    }))
}

/// Fails for `{_id: {a: 1}}`, which looks like a projection.
fn check_key(value: Value<'_>) -> Result<()> {
    let Value::Document(fields) = value else { return Ok(()) };
    if fields.first().is_some_and(|first| first.key().starts_with('$')) {
        return Ok(());
    }
    for (name, value) in fields.iter().counted() {
        match value {
            _ if name.starts_with('$') => {}
            Value::Boolean(_) => return Err(inclusion_style_error()),
            value if value.kind().is_number() => return Err(inclusion_style_error()),
            _ => {}
        }
    }
    Ok(())
}

fn inclusion_style_error() -> Error {
    Error::new(Code(17390), "$group does not support inclusion-style expressions")
}

pub(super) fn parse_fields(output: Doc<'_>, context: &Context) -> Result<Vec<(Box<str>, Accumulator)>> {
    output.iter().counted().map(|(name, value)| Ok((name.into(), parse_field(name, value, context)?))).collect()
}

fn parse_field(name: &str, value: Value<'_>, context: &Context) -> Result<Accumulator> {
    let spec = value.as_document().unwrap_or(Doc::EMPTY);
    let operator = spec.first().filter(|operator| operator.key().starts_with('$'));
    let operator =
        operator.ok_or_else(|| Error::new(Code(40234), format!("The field '{name}' must be an accumulator object")))?;
    if name.contains('.') {
        return Err(Error::new(Code(40235), format!("The field name '{name}' cannot contain '.'")));
    }
    if name.starts_with('$') {
        return Err(Error::new(Code(40236), format!("The field name '{name}' cannot be an operator name")));
    }
    if spec.elements().nth(1).is_some() {
        return Err(Error::new(Code(40238), format!("The field '{name}' must specify one accumulator")));
    }
    if let Value::Array(_) = operator.value() {
        let operator = operator.key();
        return Err(Error::new(Code(40237), format!("The {operator} accumulator is a unary operator")));
    }
    Accumulator::parse(operator.key(), operator.value(), context)
}

/// The groups of a run.
pub(super) struct GroupInput {
    group: Arc<Group>,
    table: GroupTable,
    budget: Budget,
    /// Groups that were written to disk, sorted by their keys.
    runs: Option<Runs>,
}

/// The keys found so far, with their states.
struct GroupTable {
    /// Positions in `keys`.
    positions: HashTable<u32>,
    hasher: ahash::RandomState,
    /// As first seen: of 1 and 1.0, which are one key, the first to come.
    keys: Vec<ValueBuf>,
    /// Consecutive, as many per key as there are accumulators.
    states: Vec<AccumulatorState>,
    memory_bytes: usize,
}

impl GroupTable {
    /// Returns the position of a string key with exactly these bytes.
    fn position_of_text(&self, text: &[u8], group: &Group) -> Option<usize> {
        if !group.collation.is_simple() {
            return None;
        }
        let is_text = |&index: &u32| self.keys.get(index as usize).is_some_and(|known| is_text(known, text));
        self.positions.find(self.hasher.hash_one(text), is_text).map(|&index| index as usize)
    }

    /// Returns the position of a key; adds a new group if it is unknown.
    fn find_or_insert(&mut self, key: Value<'_>, group: &Group) -> Result<usize> {
        let collation = &group.collation;
        let hash = hash_key(&self.hasher, key, collation);
        let keys = &self.keys;
        let at = |index: u32| keys.get(index as usize).map_or(Value::Null, ValueBuf::as_value);
        let is_key = |known: &ValueBuf| is_same_text(known, key) || collation.equal(known.as_value(), key);
        if let Some(&index) = self.positions.find(hash, |&index| keys.get(index as usize).is_some_and(is_key)) {
            return Ok(index as usize);
        }
        let hasher = &self.hasher;
        self.positions.insert_unique(hash, keys.len() as u32, |&index| hash_key(hasher, at(index), collation));
        let index = self.keys.len();
        let owned = key.to_owned();
        self.memory_bytes += GROUP_BYTES + owned.raw_value().len() + group.fields.len() * size_of::<AccumulatorState>();
        self.keys.push(owned);
        for (_, accumulator) in &group.fields {
            steps::step();
            self.states.push(accumulator.new_state(key)?);
        }
        Ok(index)
    }
}

/// Like [`hash_of`], with a fast path for the most frequent type of key.
fn hash_key(hasher: &ahash::RandomState, key: Value<'_>, collation: &Collation) -> u64 {
    match key {
        Value::String(text) | Value::Symbol(text) if collation.is_simple() => hasher.hash_one(text.as_bytes()),
        key => hash_of(hasher, key, collation),
    }
}

/// Returns whether two keys are strings of the same bytes, which are equal in every collation.
fn is_same_text(known: &ValueBuf, key: Value<'_>) -> bool {
    matches!(key, Value::String(text) if is_text(known, text.as_bytes()))
}

fn is_text(known: &ValueBuf, text: &[u8]) -> bool {
    // A length, the text, a zero.
    let known_text = known.raw_value().get(4..).and_then(|raw| raw.split_last());
    known.kind() == Kind::String && known_text.is_some_and(|(_, known)| known == text)
}

impl GroupInput {
    pub fn new(group: Arc<Group>, budget: Budget) -> GroupInput {
        GroupInput { group, table: GroupTable::new(), budget, runs: None }
    }

    /// Writes the groups so far to disk as a sorted run, and empties the table.
    fn spill(&mut self) -> Result<()> {
        let Some(disk) = self.budget.disk.as_deref() else {
            return Err(Error::new(
                Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.",
            ));
        };
        let runs = match &mut self.runs {
            Some(runs) => runs,
            none => none.insert(Runs::open(disk)?),
        };
        let found = std::mem::replace(&mut self.table, GroupTable::new());
        let mut order: Vec<(Vec<u8>, usize)> = Vec::with_capacity(found.keys.len());
        for (index, key) in found.keys.iter().enumerate() {
            steps::step();
            let mut bytes = Vec::new();
            self.group.collation.encode_key(key.as_value(), &mut bytes);
            order.push((bytes, index));
        }
        order.sort_unstable_by(|a, b| {
            steps::step();
            a.cmp(b)
        });
        let count = self.group.fields.len();
        let mut bytes = Vec::new();
        runs.begin();
        for (encoded, index) in order {
            steps::step();
            let Some(key) = found.keys.get(index) else { continue };
            bytes.clear();
            spill::write_value(key, &mut bytes);
            found.states.iter().skip(index * count).take(count).for_each(|state| spill::write_state(state, &mut bytes));
            runs.push(&encoded, &bytes)?;
        }
        runs.end()
    }
}

impl GroupTable {
    fn new() -> GroupTable {
        GroupTable {
            positions: HashTable::new(),
            hasher: ahash::RandomState::new(),
            keys: Vec::new(),
            states: Vec::new(),
            memory_bytes: 0,
        }
    }
}

impl BlockingStage for GroupInput {
    fn push(&mut self, document: Item<'_>) -> Result<Demand> {
        let mut fields = GatheredFields::default();
        let row = Row::gather(document, &self.group.numbering, &mut fields);
        let index = match &self.group.key {
            Key::Constant(value, _) if self.table.keys.is_empty() => {
                self.table.find_or_insert(value.as_value(), &self.group)?
            }
            Key::Constant(..) => 0,
            // A missing key groups with null.
            Key::Computed(operand) => {
                match operand.text_in(&row).and_then(|text| self.table.position_of_text(text, &self.group)) {
                    Some(index) => index,
                    None => self.table.find_or_insert(operand.evaluate_in(&row)?.value_or_null(), &self.group)?,
                }
            }
            Key::Bucket(operand, boundaries, engine) => {
                let value = operand.evaluate_in(&row)?;
                let bucket = boundaries.bucket(value.value_or_null()).map_err(|error| match engine {
                    Engine::First => error,
                    Engine::Second => second_engine::switch_error(error),
                })?;
                self.table.find_or_insert(bucket, &self.group)?
            }
        };
        let fields = &self.group.fields;
        let states = &mut self.table.states[index * fields.len()..(index + 1) * fields.len()];
        for ((_, accumulator), state) in fields.iter().zip(states) {
            steps::step();
            let grown = accumulator.add(state, &row)?;
            self.table.memory_bytes = self.table.memory_bytes.saturating_add_signed(grown);
        }
        if self.table.memory_bytes > self.budget.memory_bytes_max {
            self.spill()?;
        }
        Ok(Demand::More)
    }

    fn needs_count_only(&self) -> bool {
        matches!(self.group.key, Key::Constant(..)) && self.group.fields.iter().all(|(_, sum)| sum.is_count())
    }

    fn push_count(&mut self, number: u64) -> Result<()> {
        let Key::Constant(key, _) = &self.group.key else { return Ok(()) };
        if number > 0 {
            self.table.find_or_insert(key.as_value(), &self.group)?;
            for state in &mut self.table.states {
                if let AccumulatorState::Sum(sum) = state {
                    sum.count(number);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn DocumentSource>> {
        if self.runs.is_some() {
            self.spill()?;
        }
        if let Some(runs) = self.runs {
            return Ok(Box::new(SpilledGroupOutput {
                group: self.group,
                merge: runs.merge()?,
                next_entry: None,
                scratch: Vec::new(),
            }));
        }
        let GroupTable { keys, states, .. } = self.table;
        Ok(Box::new(GroupOutput {
            group: self.group,
            keys: keys.into_iter(),
            states: states.into_iter(),
            scratch: Vec::new(),
        }))
    }
}

/// The groups, in the order of their first documents.
struct GroupOutput {
    group: Arc<Group>,
    keys: std::vec::IntoIter<ValueBuf>,
    states: std::vec::IntoIter<AccumulatorState>,
    scratch: Vec<u8>,
}

impl DocumentSource for GroupOutput {
    fn emit_next(&mut self, take: &mut Consumer<'_>, _pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        let Some(key) = self.keys.next() else { return Ok(None) };
        let states = self.states.by_ref().take(self.group.fields.len());
        write_group(&self.group, &key, states, &mut self.scratch)?;
        take(Doc::from_bytes(&self.scratch).unwrap_or(Doc::EMPTY).into()).map(Some)
    }
}

/// Groups that are read back from disk, in the order of their keys.
struct SpilledGroupOutput {
    group: Arc<Group>,
    merge: MergedRuns,
    /// The first piece of the next group.
    next_entry: Option<Entry>,
    scratch: Vec<u8>,
}

impl SpilledGroupOutput {
    fn next_piece(&mut self) -> Result<Option<Entry>> {
        match self.next_entry.take() {
            Some(entry) => Ok(Some(entry)),
            None => self.merge.next_entry(),
        }
    }

    fn states(&self, entry: &Entry) -> Result<(ValueBuf, Vec<AccumulatorState>)> {
        let damaged = || Error::internal("a spill file is damaged");
        let mut bytes = entry.value.as_slice();
        let key = spill::read_value(&mut bytes).ok_or_else(damaged)?;
        let mut states = Vec::with_capacity(self.group.fields.len());
        for (_, accumulator) in &self.group.fields {
            let mut state = accumulator.new_state(key.as_value())?;
            spill::read_state(&mut state, &mut bytes).ok_or_else(damaged)?;
            states.push(state);
        }
        Ok((key, states))
    }
}

impl DocumentSource for SpilledGroupOutput {
    fn emit_next(&mut self, take: &mut Consumer<'_>, pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        let Some(first) = self.next_piece()? else { return Ok(None) };
        let (key, mut states) = self.states(&first)?;
        while let Some(more) = self.next_piece()? {
            pace()?;
            if more.key != first.key {
                self.next_entry = Some(more);
                break;
            }
            let (_, later) = self.states(&more)?;
            for (((_, accumulator), state), later) in self.group.fields.iter().zip(&mut states).zip(later) {
                accumulator.merge(state, later)?;
            }
        }
        write_group(&self.group, &key, states.into_iter(), &mut self.scratch)?;
        take(Doc::from_bytes(&self.scratch).unwrap_or(Doc::EMPTY).into()).map(Some)
    }
}

/// Writes the document of one group.
fn write_group(
    group: &Group,
    key: &ValueBuf,
    states: impl Iterator<Item = AccumulatorState>,
    scratch: &mut Vec<u8>,
) -> Result<()> {
    scratch.clear();
    let mut writer = DocWriter::begin(scratch);
    writer.append("_id", key);
    for ((name, accumulator), state) in group.fields.iter().zip(states) {
        steps::step();
        accumulator.write(&state, name, &mut writer);
        query::check_size_between_stages(writer.size())?;
    }
    drop(writer);
    Ok(())
}
