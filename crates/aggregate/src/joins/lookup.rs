//! `$lookup`: adds documents of another collection to each input document.

use super::join_values;
use super::sources::{documents_of, missing_source, parse_source, split_documents};
use super::sub_pipeline::parse_sub_pipeline;
use crate::add_fields::set_path;
use crate::stage::Pipeline;
use document::path::Path;
use document::{ArrayWriter, Collation, Doc, DocBuf, DocWriter, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::HashSet;
use query::context::Folding;
use query::expression::{check_field_path, check_variable_name};
use query::metadata::{Meta, Needs};
use query::{Context, Expression, Item, Predicate};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use steps::Counted;
use values::text;

/// Maximal size of the matches of one document.
pub const MATCHES_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Matches of several documents are queried together if those have no more values than this.
const BATCH_VALUES_MAX: usize = 1000;

#[derive(Debug)]
pub struct Lookup {
    collection: String,
    /// The path to which the array of matches is written.
    target: Vec<Box<str>>,
    fields: Option<JoinFields>,
    /// `let`: variables for the pipeline, computed from the input document.
    variables: Vec<(Box<str>, Expression)>,
    /// The operand of a leading `$documents`, which replaces the collection.
    documents: Option<ValueBuf>,
    has_pipeline: bool,
    /// Whether the fields on the path to the target are moved after all others, as in MongoDB's
    /// second engine.
    moves_target_last: bool,
    /// The rest of `pipeline`, as sent: if it may read variables, it is parsed for each document.
    stages: ValueBuf,
    /// The parsed pipeline, if it reads no variables.
    pipeline: Option<Pipeline>,
    context: Context,
}

/// `localField` and `foreignField`.
#[derive(Debug)]
struct JoinFields {
    local: Path,
    foreign: String,
    foreign_path: Path,
}

impl Lookup {
    /// Returns the path that the stage writes to.
    pub(crate) fn target(&self) -> String {
        self.target.join(".")
    }

    pub(super) fn parse(spec: Value<'_>, context: &Context) -> Result<Lookup> {
        let Value::Document(spec) = spec else {
            let kind = spec.kind().alias();
            let message = format!("the $lookup stage specification must be an object, but found {kind}");
            return Err(Error::failed_to_parse(message));
        };
        let (mut from, mut target, mut local, mut foreign) = (None, None, None, None);
        let (mut variables, mut stages) = (Vec::new(), None);
        for (name, value) in spec.iter() {
            match name {
                "from" => from = Some(parse_source("$lookup", value)?),
                "as" => target = Some(string(name, value)?),
                "localField" => local = Some(string(name, value)?),
                "foreignField" => foreign = Some(string(name, value)?),
                "let" => variables = parse_variables(value, context)?,
                "pipeline" => stages = value.as_array(),
                _ => {
                    string(name, value)?;
                    return Err(Error::failed_to_parse(format!("unknown argument to $lookup: {name}")));
                }
            }
        }
        let target = target.filter(|target| !target.is_empty());
        let target = target.ok_or_else(|| Error::failed_to_parse("must specify 'as' field for a $lookup"))?;
        let (documents, rest) = split_documents(stages.unwrap_or(Doc::EMPTY));
        let from = match from {
            Some(from) => from,
            None if documents.is_some() => "",
            None => return Err(missing_source("$lookup")),
        };
        if spec.get("let").is_some() && stages.is_none() {
            return Err(Error::failed_to_parse("$lookup with a 'let' argument must also specify 'pipeline'"));
        }
        let given = |path: Option<&'_ str>| path.is_some_and(|path| !path.is_empty());
        let (local, foreign) = (local.as_deref(), foreign.as_deref());
        if given(local) != given(foreign) {
            return Err(no_fields_and_no_pipeline());
        }
        check_field_path(&target)?;
        let fields = parse_fields(local, foreign)?;
        if fields.is_none() && stages.is_none() {
            return Err(no_fields_and_no_pipeline());
        }
        // A condition on fields is inserted between a view's stages and those of the pipeline, so
        // the view is not merged into the pipeline.
        let (from, rest) = if fields.is_none() { context.views.resolve(from, rest.as_doc()) } else { (from, rest) };
        let mut lookup = Lookup {
            collection: from.to_owned(),
            target: target.split('.').map(Into::into).collect(),
            fields,
            variables,
            documents: documents.map(Value::to_owned),
            has_pipeline: stages.is_some(),
            moves_target_last: false,
            stages: Value::Array(rest.as_doc()).to_owned(),
            pipeline: None,
            // Errors of the part that is parsed per document are reported with the document.
            context: Context {
                folding: Folding::AtOnce,
                text_indexes: context.text_indexes.for_collection(from),
                ..context.clone()
            },
        };
        // The condition on fields precedes the pipeline.
        if lookup.fields.is_some() && begins_with_text_search(rest.as_doc()) {
            let message = "$match with $text is only allowed as the first pipeline stage";
            return Err(Error::new(Code(17313), message));
        }
        // Errors of the pipeline are errors of the command, not of a document. But constants are
        // computed with the first document, if there is one.
        let unfolded = Context { folding: Folding::Never, ..lookup.context_with_declared_variables() };
        parse_sub_pipeline("$lookup", rest.as_doc(), &unfolded)?;
        if lookup.variables.is_empty() {
            lookup.pipeline = parse_sub_pipeline("$lookup", rest.as_doc(), &lookup.context).ok();
        }
        Ok(lookup)
    }

    /// Returns the command's context, with the variables of `let` declared.
    fn context_with_declared_variables(&self) -> Context {
        let mut context = self.context.clone();
        context.variables = self.outer_variables().into();
        Arc::make_mut(&mut context.missing_variables)
            .extend(self.variables.iter().counted().map(|(name, _)| name.clone()));
        context
    }

    /// Returns the command's variables that `let` does not hide.
    fn outer_variables(&self) -> DocBuf {
        let inner: HashSet<&str> = self.variables.iter().counted().map(|(name, _)| &**name).collect();
        let outer = self.context.variables.as_doc().elements().counted();
        DocBuf::build(|writer| {
            outer.filter(|outer| !inner.contains(outer.key())).for_each(|outer| writer.append_element(outer));
        })
    }

    /// Returns the collection to query, in the same database.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Returns the query for one input document: a condition on the collection, and a pipeline for
    /// the documents that match.
    pub fn query(&self, item: Item<'_>) -> Result<(Predicate, Pipeline)> {
        let context = self.context_for(item)?;
        let predicate = match &self.fields {
            Some(fields) => Predicate::parse(fields.filter(item.document).as_doc(), &context)?,
            None => Predicate::everything(),
        };
        let within = Context { enclosing_pipelines: context.enclosing_pipelines + 1, ..context };
        let mut pipeline = match &self.pipeline {
            Some(pipeline) => pipeline.clone(),
            // Parsed again, with the same limit on nesting as the first time.
            None => Pipeline::parse(self.stages.as_value().as_array().unwrap_or(Doc::EMPTY), &within)?,
        };
        // Conditions from both sides are tested in the order of their kinds, not as they were
        // written.
        let predicate = match self.fields.as_ref().and_then(|_| pipeline.remove_leading_match()) {
            Some(first) => predicate.and(first).arranged(),
            None => predicate,
        };
        Ok((predicate, pipeline))
    }

    /// Returns whether the matches are determined by the fields only.
    pub fn joins_on_fields_only(&self) -> bool {
        self.fields.is_some() && !self.has_pipeline
    }

    /// Returns a condition that the matches of all these documents meet, and perhaps others. `None`
    /// if it depends on more than the fields, or if the values are too many or not allowed in a
    /// list.
    pub fn query_for_batch<'d>(&self, documents: impl Iterator<Item = Doc<'d>>) -> Result<Option<Predicate>> {
        let Some(fields) = self.fields.as_ref().filter(|_| self.joins_on_fields_only()) else { return Ok(None) };
        let (mut known, mut key) = (HashSet::<Vec<u8>, ahash::RandomState>::default(), Vec::new());
        let mut bytes = Vec::new();
        let mut list = ArrayWriter::begin(&mut bytes);
        for value in documents.counted().flat_map(|document| fields.values(document)) {
            // A list takes regular expressions as patterns and rejects documents that look like
            // operators.
            let is_refused = match value {
                Value::Document(document) => document.first().is_some_and(|first| first.key().starts_with('$')),
                value => matches!(value.kind(), Kind::Regex | Kind::Undefined),
            };
            if is_refused || known.len() == BATCH_VALUES_MAX {
                return Ok(None);
            }
            key.clear();
            document::key::encode(value, &mut key);
            if !known.contains(&key) {
                known.insert(key.clone());
                list.push(value);
            }
        }
        drop(list);
        let mut condition = DocBuf::new();
        condition.append("$in", Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)));
        let mut filter = DocBuf::new();
        filter.append(&fields.foreign, &condition);
        Predicate::parse(filter.as_doc(), &self.context).map(Some)
    }

    /// Returns the documents to search instead of a collection, if the pipeline provides them.
    pub fn inline_documents(&self, item: Item<'_>) -> Result<Option<Vec<DocBuf>>> {
        let Some(operand) = &self.documents else { return Ok(None) };
        documents_of(operand.as_value(), &self.context_for(item)?).map(Some)
    }

    /// Returns whether [`Lookup::inline_documents`] returns documents.
    pub fn has_inline_documents(&self) -> bool {
        self.documents.is_some()
    }

    /// Returns whether MongoDB's second engine executes it: a join on fields that are no array
    /// positions, and nothing else.
    pub(crate) fn is_supported_by_second_engine(&self) -> bool {
        let Some(fields) = &self.fields else { return false };
        let has_position = fields.local.has_position() || fields.foreign_path.has_position();
        !has_position && !self.has_pipeline && !self.context.views.contains(&self.collection)
    }

    pub(crate) fn use_second_engine(&mut self) {
        self.moves_target_last = true;
    }

    /// Returns whether the matches depend on the document.
    pub fn is_correlated(&self) -> bool {
        self.fields.is_some() || !self.variables.is_empty()
    }

    /// `foreignField`
    pub fn foreign_field(&self) -> Option<&str> {
        self.fields.as_ref().map(|fields| fields.foreign.as_str())
    }

    pub(super) fn foreign_path(&self) -> Option<&Path> {
        self.fields.as_ref().map(|fields| &fields.foreign_path)
    }

    pub(super) fn collation(&self) -> &Collation {
        &self.context.collation
    }

    /// Returns the values one of which the foreign field must equal.
    pub(super) fn local_values<'d>(&self, document: Doc<'d>) -> Vec<Value<'d>> {
        self.fields.as_ref().map_or_else(Vec::new, |fields| fields.values(document))
    }

    /// Returns error 4568: the matches of one document are too large.
    pub fn matches_too_large(&self) -> Error {
        let message = format!(
            "Total size of documents in {} matching pipeline's $lookup stage exceeds {MATCHES_BYTES_MAX} bytes",
            self.collection
        );
        Error::new(Code(4568), message)
    }

    /// Returns the input document with its matches.
    ///
    /// Fails with 4568 if it would be too large for a document.
    pub fn join<'m>(&self, document: Doc<'_>, matches: impl Iterator<Item = Doc<'m>>) -> Result<DocBuf> {
        let mut bytes = Vec::new();
        let mut array = ArrayWriter::begin(&mut bytes);
        for found in matches {
            steps::step();
            steps::bytes(found.size());
            array.push_raw(Kind::Document, found.as_bytes());
            if array.size() > MATCHES_BYTES_MAX {
                return Err(self.matches_too_large());
            }
        }
        drop(array);
        let found = Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY));
        let mut joined = Vec::with_capacity(document.size() + bytes.len());
        let mut writer = DocWriter::begin(&mut joined);
        if self.moves_target_last {
            append_path(document, &self.target, found, &mut writer);
        } else {
            set_path(document, &self.target, Some(found), &mut writer);
        }
        drop(writer);
        Ok(DocBuf::from_vec(joined).unwrap_or_default())
    }

    /// Returns the command's context with the variables computed from this document.
    fn context_for(&self, item: Item<'_>) -> Result<Context> {
        let mut context = self.context.clone();
        if self.variables.is_empty() {
            return Ok(context);
        }
        let missing = Arc::make_mut(&mut context.missing_variables);
        let mut variables = self.outer_variables();
        for (name, expression) in &self.variables {
            steps::step();
            match expression.evaluate(item)?.value() {
                Some(value) => {
                    missing.remove(name);
                    variables.append(name, value);
                }
                None => drop(missing.insert(name.clone())),
            }
        }
        context.variables = variables.into();
        Ok(context)
    }
}

/// Writes `document` with `value` at the end of a path, each field on the path after all others of
/// its document.
fn append_path(document: Doc<'_>, path: &[Box<str>], value: Value<'_>, writer: &mut DocWriter<'_>) {
    let Some((name, rest)) = path.split_first() else { return };
    let mut current = None;
    for element in document.elements() {
        steps::step();
        if current.is_none() && element.key_bytes() == name.as_bytes() {
            current = Some(element.value());
        } else {
            writer.append_element(element);
        }
    }
    if rest.is_empty() {
        return writer.append(name, value);
    }
    let inner = current.and_then(Value::as_document).unwrap_or(Doc::EMPTY);
    append_path(inner, rest, value, &mut writer.document(name));
}

impl JoinFields {
    /// Returns the local field's value, or its elements.
    fn values<'d>(&self, document: Doc<'d>) -> Vec<Value<'d>> {
        let mut values: Vec<Value<'d>> = Vec::new();
        let local: SmallVec<[&str; 4]> = self.local.components().collect();
        join_values::visit_values(document, &local, &mut |value| values.push(value));
        if values.is_empty() {
            values.push(Value::Null);
        }
        values
    }

    /// Returns the condition that the foreign field equals the local one, or one of its elements.
    fn filter(&self, document: Doc<'_>) -> DocBuf {
        // Regular expressions are values here, which `$in` would take as patterns.
        let mut bytes = Vec::new();
        let mut array = ArrayWriter::begin(&mut bytes);
        for value in self.values(document) {
            steps::step();
            let mut condition = DocBuf::new();
            let mut equals = DocBuf::new();
            equals.append("$eq", value);
            condition.append(&self.foreign, &equals);
            array.push(&condition);
        }
        drop(array);
        let mut filter = DocBuf::new();
        filter.append("$or", Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)));
        filter
    }
}

fn string<'v>(name: &str, value: Value<'v>) -> Result<Cow<'v, str>> {
    value.as_name().ok_or_else(|| {
        let found = text::element(name, value);
        let kind = value.kind().alias();
        let message = format!("$lookup argument '{name}' must be a string, found {found}: {kind}");
        Error::failed_to_parse(message)
    })
}

/// Returns whether a pipeline begins with a text search.
fn begins_with_text_search(stages: Doc<'_>) -> bool {
    let first = stages.values().next().and_then(Value::as_document).and_then(Doc::first);
    let filter = first.filter(|stage| stage.key() == "$match").and_then(|stage| stage.value().as_document());
    filter.is_some_and(|filter| Needs::given_by(filter).contains(Meta::TextScore))
}

fn no_fields_and_no_pipeline() -> Error {
    Error::failed_to_parse("$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
}

fn parse_fields(local: Option<&str>, foreign: Option<&str>) -> Result<Option<JoinFields>> {
    match (local, foreign) {
        (Some(""), Some("")) => Ok(None),
        (Some(local), Some(foreign)) => {
            check_field_path(local)?;
            check_field_path(foreign)?;
            let (local, foreign_path) = (Path::new(local), Path::new(foreign));
            Ok(Some(JoinFields { local, foreign: foreign.to_owned(), foreign_path }))
        }
        (None, None) => Ok(None),
        _ => Err(no_fields_and_no_pipeline()),
    }
}

fn parse_variables(value: Value<'_>, context: &Context) -> Result<Vec<(Box<str>, Expression)>> {
    let Value::Document(spec) = value else {
        let found = text::element("let", value);
        let kind = value.kind().alias();
        let message = format!("$lookup argument '{found}' must be an object, is type {kind}");
        return Err(Error::failed_to_parse(message));
    };
    // Constants are computed with a document, like the rest.
    let context = &Context { folding: Folding::Never, ..context.clone() };
    spec.iter()
        .map(|(name, value)| {
            check_variable_name(name)?;
            Ok((name.into(), Expression::parse(value, context)?))
        })
        .collect()
}
