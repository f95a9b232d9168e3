//! `$out` and `$merge`: write the results of the pipeline to a collection.

use super::sources::{unknown_field, wrong_type};
use super::sub_pipeline::parse_sub_pipeline;
use crate::stage::Pipeline;
use document::{Collation, Doc, DocBuf, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::{HashMap, HashSet};
use query::context::Folding;
use query::expression::{check_field_path, check_variable_name};
use query::{Context, Expression};
use steps::Counted;

/// `$out`: the results replace a collection.
#[derive(Debug)]
pub struct Out {
    /// `None` is the database of the command.
    pub database: Option<String>,
    pub collection: String,
}

impl Out {
    pub(crate) fn parse(spec: Value<'_>) -> Result<Out> {
        match spec {
            Value::String("") => Err(Error::new(Code::INVALID_NAMESPACE, "Invalid $out target namespace")),
            Value::String(collection) => Ok(Out { database: None, collection: collection.to_owned() }),
            Value::Document(spec) => {
                if spec.elements().count() != 2 || spec.get("db").is_none() || spec.get("coll").is_none() {
                    let message = "If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'";
                    return Err(Error::new(Code(16994), message));
                }
                let (database, collection) = parse_target("$out", spec)?;
                Ok(Out { database, collection })
            }
            other => {
                let kind = other.kind().alias();
                let message = format!("$out only supports a string or object argument, but found {kind}");
                Err(Error::new(Code(16990), message))
            }
        }
    }
}

/// Parses `{db, coll}`.
fn parse_target(stage: &str, spec: Doc<'_>) -> Result<(Option<String>, String)> {
    let (mut database, mut collection) = (None, None);
    for (name, value) in spec.iter() {
        match (name, value) {
            ("db", Value::String(text)) => database = Some(text.to_owned()),
            ("coll", Value::String(text)) => collection = Some(text.to_owned()),
            ("db" | "coll", other) if stage == "$out" => {
                let message = format!("wrong type for field ({name}) {} != string", other.kind().alias());
                return Err(Error::new(Code(13111), message));
            }
            ("db" | "coll", other) => return Err(wrong_type(stage, name, other, "string")),
            _ => return Err(unknown_field(stage, name)),
        }
    }
    Ok((database, collection.ok_or_else(|| missing(&format!("{stage}.coll")))?))
}

fn missing(field: &str) -> Error {
    Error::new(Code(40414), format!("BSON field '{field}' is missing but a required field"))
}

/// `$merge`: the results are merged into a collection.
#[derive(Debug)]
pub struct Merge {
    /// `None` is the database of the command.
    pub database: Option<String>,
    pub collection: String,
    /// The fields that identify a document. There must be a unique index on them.
    pub on: Vec<String>,
    pub when_matched: WhenMatched,
    pub when_not_matched: WhenNotMatched,
    /// The collation of those fields.
    pub collation: Collation,
    /// Whether the fields were named.
    pub has_explicit_on: bool,
    /// The error of the variables and of the pipeline that reads them, reported after errors of the
    /// fields.
    pub deferred_error: Option<Error>,
}

/// The action for a document that exists.
#[derive(Debug)]
pub enum WhenMatched {
    Replace,
    KeepExisting,
    /// The new fields replace the old ones.
    Merge,
    Fail,
    /// A pipeline is applied to the old document. It reads the new one in variables (`$$new`),
    /// followed by those of the command.
    Pipeline {
        stages: ValueBuf,
        variables: Vec<(String, Expression)>,
        outer_variables: DocBuf,
    },
}

/// The action for a document that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}

impl Merge {
    pub(super) fn parse(spec: Value<'_>, context: &Context) -> Result<Merge> {
        let mut merge = Merge::with_defaults(&context.collation);
        Merge::check_fields(spec)?;
        match spec {
            Value::Document(spec) => merge.parse_spec(spec, context)?,
            other => merge.collection = other.as_str().unwrap_or_default().to_owned(),
        }
        Ok(merge)
    }

    /// Returns the default stage.
    fn with_defaults(collation: &Collation) -> Merge {
        Merge {
            database: None,
            collection: String::new(),
            on: vec!["_id".to_owned()],
            when_matched: WhenMatched::Merge,
            when_not_matched: WhenNotMatched::Insert,
            collation: collation.clone(),
            has_explicit_on: false,
            deferred_error: None,
        }
    }

    fn parse_spec(&mut self, spec: Doc<'_>, context: &Context) -> Result<()> {
        let (let_spec, on_fields) = self.parse_fields(spec)?;
        let alone = match self.when_matched {
            WhenMatched::KeepExisting => Some("keepExisting"),
            WhenMatched::Fail => Some("fail"),
            _ => None,
        };
        let otherwise = match self.when_not_matched {
            WhenNotMatched::Insert => None,
            WhenNotMatched::Discard => Some("discard"),
            WhenNotMatched::Fail => Some("fail"),
        };
        if let (Some(matched), Some(not_matched)) = (alone, otherwise) {
            let message = format!(
                "Combination of $merge modes 'whenMatched: {matched}' and 'whenNotMatched: {not_matched}' is not supported"
            );
            return Err(Error::new(Code(51181), message));
        }
        if let Some(fields) = on_fields {
            fields.iter().try_for_each(|path| check_field_path(path))?;
            let mut seen = HashSet::new();
            if let Some(twice) = fields.iter().counted().find(|path| !seen.insert((*path).clone())) {
                return Err(Error::new(Code(31465), format!("Found a duplicate field '{twice}'")));
            }
            self.has_explicit_on = true;
            self.on = fields;
        }
        self.deferred_error = self.parse_let(let_spec, spec.get("whenMatched"), context).err();
        Ok(())
    }

    /// Parses the fields of a specification in their order; returns the values of `let` and `on`.
    fn parse_fields<'a>(&mut self, spec: Doc<'a>) -> Result<(Option<Doc<'a>>, Option<Vec<String>>)> {
        let (mut let_spec, mut on_fields) = (None, None);
        for (name, value) in spec.iter().counted() {
            match name {
                "let" | "whenNotMatched" if value.kind() == Kind::Null => {}
                "into" => {
                    (self.database, self.collection) = parse_into(value)?;
                }
                "on" => on_fields = Some(parse_on(value)?),
                "whenMatched" => self.when_matched = parse_when_matched(value)?,
                "whenNotMatched" => self.when_not_matched = parse_when_not_matched(value)?,
                "let" => {
                    let_spec = Some(value.as_document().ok_or_else(|| wrong_type("$merge", name, value, "object"))?);
                }
                _ => return Err(unknown_field("$merge", name)),
            }
        }
        match spec.get("into") {
            Some(_) => Ok((let_spec, on_fields)),
            None => Err(missing("$merge.into")),
        }
    }

    fn parse_let(&mut self, let_spec: Option<Doc<'_>>, mode: Option<Value<'_>>, context: &Context) -> Result<()> {
        match (&mut self.when_matched, mode) {
            (WhenMatched::Pipeline { variables: slot, stages, outer_variables: around }, _) => {
                let mut variables = let_spec.map_or(Ok(Vec::new()), |let_spec| parse_variables(let_spec, context))?;
                // If variables are named and nothing is inserted, the new document is not sent
                // along.
                let is_sent = let_spec.is_none() || self.when_not_matched == WhenNotMatched::Insert;
                if is_sent && variables.iter().all(|(name, _)| name != "new") {
                    variables.push(("new".to_owned(), Expression::parse(Value::String("$$ROOT"), context)?));
                }
                // Errors of the pipeline are errors of the command, not of a document.
                let mut inner = context.clone();
                for (name, _) in &variables {
                    inner.variables.append(name, Value::Null);
                }
                let _: Pipeline =
                    parse_sub_pipeline("$merge", stages.as_value().as_array().unwrap_or(Doc::EMPTY), &inner)?;
                *slot = variables;
                *around = context.variables.as_doc().to_owned();
            }
            (_, mode) if let_spec.is_some() => {
                let mode = mode.and_then(Value::as_str).unwrap_or("merge");
                let message = format!("Cannot use 'let' variables with 'whenMatched: {mode}' mode");
                return Err(Error::new(Code(51199), message));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the fields of a specification one by one. Returns the pipeline in it, whose stages
    /// the caller checks.
    pub(crate) fn check_fields(spec: Value<'_>) -> Result<Option<ValueBuf>> {
        match spec {
            Value::String(_) => Ok(None),
            Value::Document(spec) => {
                let mut merge = Merge::with_defaults(&Collation::SIMPLE);
                merge.parse_fields(spec)?;
                Ok(match merge.when_matched {
                    WhenMatched::Pipeline { stages, .. } => Some(stages),
                    _ => None,
                })
            }
            other => {
                let kind = other.kind().alias();
                let message = format!("$merge requires a string or object argument, but found {kind}");
                Err(Error::type_mismatch(message))
            }
        }
    }
}

fn parse_variables(spec: Doc<'_>, context: &Context) -> Result<Vec<(String, Expression)>> {
    if spec.get("new").is_some_and(|new| new != Value::String("$$ROOT")) {
        let message = "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'";
        return Err(Error::new(Code(51273), message));
    }
    // Constants are computed once there is a document.
    let context = Context { folding: Folding::Never, ..context.clone() };
    let mut variables: Vec<(String, Expression)> = Vec::new();
    // Of several fields with one name the last one counts, in its own position.
    let indices = spec.elements().counted().enumerate().map(|(index, element)| (element.key(), index));
    let last: HashMap<&str, usize> = indices.collect();
    for (index, (name, value)) in spec.iter().counted().enumerate() {
        check_variable_name(name)?;
        let expression = Expression::parse(value, &context)?;
        if last.get(name) == Some(&index) {
            variables.push((name.to_owned(), expression));
        }
    }
    Ok(variables)
}

fn parse_into(value: Value<'_>) -> Result<(Option<String>, String)> {
    match value {
        Value::String("") => Err(Error::new(Code(5786800), "$merge 'into' field cannot be an empty string")),
        Value::String(collection) => Ok((None, collection.to_owned())),
        Value::Document(spec)
            if spec.get("db").is_none_or(|name| matches!(name, Value::Null | Value::String(_)))
                && spec.elements().all(|field| matches!(field.key(), "db" | "coll"))
                && spec.get("coll").is_none_or(|name| matches!(name, Value::Null | Value::String(""))) =>
        {
            let message = "$merge 'into' field must specify a 'coll' that is not empty, null or undefined";
            Err(Error::new(Code(5786801), message))
        }
        Value::Document(spec) => parse_target("into", spec),
        other => {
            let kind = other.kind().alias();
            let message = format!("$merge 'into' field  must be either a string or an object, but found {kind}");
            Err(Error::new(Code(51178), message))
        }
    }
}

fn parse_on(value: Value<'_>) -> Result<Vec<String>> {
    match value {
        Value::String(path) => Ok(vec![path.to_owned()]),
        Value::Array(fields) if fields.is_empty() => {
            let message = "If explicitly specifying $merge 'on', must include at least one field";
            Err(Error::new(Code(51187), message))
        }
        Value::Array(fields) => fields
            .values()
            .map(|path| match path {
                Value::String(path) => Ok(path.to_owned()),
                other => {
                    let kind = other.kind().alias();
                    let message = format!("$merge 'on' array elements must be strings, but found {kind}");
                    Err(Error::new(Code(51134), message))
                }
            })
            .collect(),
        other => {
            let kind = other.kind().alias();
            let message =
                format!("$merge 'on' field  must be either a string or an array of strings, but found {kind}");
            Err(Error::new(Code(51186), message))
        }
    }
}

fn parse_when_matched(value: Value<'_>) -> Result<WhenMatched> {
    match value {
        Value::String("replace") => Ok(WhenMatched::Replace),
        Value::String("keepExisting") => Ok(WhenMatched::KeepExisting),
        Value::String("merge") => Ok(WhenMatched::Merge),
        Value::String("fail") => Ok(WhenMatched::Fail),
        Value::Array(stages) if stages.values().any(|stage| stage.as_document().is_none()) => {
            Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"))
        }
        Value::Array(_) => Ok(WhenMatched::Pipeline {
            stages: value.to_owned(),
            variables: Vec::new(),
            outer_variables: DocBuf::new(),
        }),
        Value::String(other) => Err(bad_mode("whenMatched", other)),
        other => {
            let kind = other.kind().alias();
            let message = format!("$merge 'whenMatched' field  must be either a string or an array, but found {kind}");
            Err(Error::new(Code(51191), message))
        }
    }
}

fn parse_when_not_matched(value: Value<'_>) -> Result<WhenNotMatched> {
    match value {
        Value::String("insert") => Ok(WhenNotMatched::Insert),
        Value::String("discard") => Ok(WhenNotMatched::Discard),
        Value::String("fail") => Ok(WhenNotMatched::Fail),
        Value::String(other) => Err(bad_mode("whenNotMatched", other)),
        other => Err(wrong_type("$merge", "whenNotMatched", other, "string")),
    }
}

fn bad_mode(field: &str, found: &str) -> Error {
    Error::bad_value(format!("Enumeration value '{found}' for field '$merge.{field}' is not a valid value."))
}
