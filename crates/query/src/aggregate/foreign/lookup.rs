//! `$lookup`: documents of another collection beside each document of the input.

use super::sub_pipeline;
use crate::aggregate::Pipeline;
use crate::aggregate::add_fields::set_path;
use crate::expression::check_field_path;
use crate::{Context, Expression, Predicate, text};
use document::path::{End, Path};
use document::{ArrayWriter, Doc, DocBuf, DocWriter, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use std::ops::ControlFlow;

#[derive(Debug)]
pub struct Lookup {
    collection: String,
    /// Where the array of matches goes.
    target: Vec<Box<str>>,
    fields: Option<Fields>,
    /// `let`: variables for the pipeline, computed from the input document.
    variables: Vec<(Box<str>, Expression)>,
    /// `pipeline`, as sent: it is parsed per document where it may read variables.
    stages: ValueBuf,
    context: Context,
}

/// `localField` and `foreignField`.
#[derive(Debug)]
struct Fields {
    local: Path,
    foreign: String,
}

impl Lookup {
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
                "from" => {
                    let kind = value.kind().alias();
                    let message = format!("$lookup 'from' field must be a string, but found {kind}");
                    from = Some(value.as_str().ok_or_else(|| Error::failed_to_parse(message))?);
                }
                "as" => target = Some(string(name, value)?),
                "localField" => local = Some(string(name, value)?),
                "foreignField" => foreign = Some(string(name, value)?),
                "let" => variables = parse_variables(value, context)?,
                "pipeline" => {
                    let message = "'pipeline' option must be specified as an array";
                    stages = Some(value.as_array().ok_or_else(|| Error::type_mismatch(message))?);
                }
                _ => {
                    string(name, value)?;
                    return Err(Error::failed_to_parse(format!("unknown argument to $lookup: {name}")));
                }
            }
        }
        let target = target.filter(|target| !target.is_empty());
        let target = target.ok_or_else(|| Error::failed_to_parse("must specify 'as' field for a $lookup"))?;
        let from = from.ok_or_else(|| Error::failed_to_parse("must specify 'pipeline' when 'from' is empty"))?;
        check_field_path(target)?;
        let fields = parse_fields(local, foreign)?;
        if fields.is_none() && stages.is_none() {
            return Err(neither());
        }
        let stages = stages.unwrap_or(Doc::EMPTY);
        let lookup = Lookup {
            collection: from.to_owned(),
            target: target.split('.').map(Into::into).collect(),
            fields,
            variables,
            stages: Value::Array(stages).to_owned(),
            context: context.clone(),
        };
        // Errors of the pipeline are errors of the command, not of a document.
        sub_pipeline("$lookup", stages, &lookup.context_for(Doc::EMPTY)?)?;
        Ok(lookup)
    }

    /// The collection to look in, in the same database.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// What to look for, for one document of the input: a condition on the collection, and what goes on with the
    /// documents that meet it.
    pub fn query(&self, document: Doc<'_>) -> Result<(Predicate, Pipeline)> {
        let context = self.context_for(document)?;
        let predicate = match &self.fields {
            Some(fields) => Predicate::parse(fields.filter(document).as_doc(), &context)?,
            None => Predicate::everything(),
        };
        Ok((predicate, Pipeline::parse(self.stages.as_value().as_array().unwrap_or(Doc::EMPTY), &context)?))
    }

    /// The input document with what was found.
    pub fn join<'m>(&self, document: Doc<'_>, matches: impl Iterator<Item = Doc<'m>>) -> DocBuf {
        let mut bytes = Vec::new();
        let mut array = ArrayWriter::begin(&mut bytes);
        matches.for_each(|found| array.push_raw(Kind::Document, found.as_bytes()));
        drop(array);
        let found = Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY));
        let mut joined = Vec::with_capacity(document.size() + bytes.len());
        set_path(document, &self.target, Some(found), &mut DocWriter::begin(&mut joined));
        DocBuf::from_vec(joined).unwrap_or_default()
    }

    /// The command's context with the variables that this document gives.
    fn context_for(&self, document: Doc<'_>) -> Result<Context> {
        let mut context = self.context.clone();
        if self.variables.is_empty() {
            return Ok(context);
        }
        let outer = std::mem::take(&mut context.variables);
        let is_inner = |name: &str| self.variables.iter().any(|(inner, _)| **inner == *name);
        let mut bytes = Vec::new();
        let mut writer = DocWriter::begin(&mut bytes);
        let outer = outer.as_doc();
        outer.elements().filter(|element| !is_inner(element.key())).for_each(|element| writer.append_element(element));
        for (name, expression) in &self.variables {
            // A variable has to be there for the pipeline to parse; where it would be missing it is null.
            writer.append(name, expression.evaluate(document)?.value_or_null());
        }
        drop(writer);
        context.variables = DocBuf::from_vec(bytes).unwrap_or_default();
        Ok(context)
    }
}

impl Fields {
    /// The condition that the foreign field equals the local one, or one of its elements.
    fn filter(&self, document: Doc<'_>) -> DocBuf {
        let mut values: Vec<Value<'_>> = Vec::new();
        let flow = self.local.visit(document, End::Whole, &mut |reached| {
            match reached.value {
                Some(Value::Array(array)) => values.extend(array.values()),
                value => values.push(value.unwrap_or(Value::Null)),
            }
            ControlFlow::Continue(())
        });
        debug_assert!(flow.is_continue());
        if values.is_empty() {
            values.push(Value::Null);
        }
        // Regular expressions are values here, which `$in` would take for patterns.
        let mut bytes = Vec::new();
        let mut array = ArrayWriter::begin(&mut bytes);
        for value in values {
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

fn string<'v>(name: &str, value: Value<'v>) -> Result<&'v str> {
    value.as_str().ok_or_else(|| {
        let found = text::element(name, value);
        let kind = value.kind().alias();
        let message = format!("$lookup argument '{name}' must be a string, found {found}: {kind}");
        Error::failed_to_parse(message)
    })
}

fn neither() -> Error {
    Error::failed_to_parse("$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
}

fn parse_fields(local: Option<&str>, foreign: Option<&str>) -> Result<Option<Fields>> {
    match (local, foreign) {
        (Some(local), Some(foreign)) => {
            check_field_path(local)?;
            check_field_path(foreign)?;
            Ok(Some(Fields { local: Path::new(local), foreign: foreign.to_owned() }))
        }
        (None, None) => Ok(None),
        _ => Err(neither()),
    }
}

fn parse_variables(value: Value<'_>, context: &Context) -> Result<Vec<(Box<str>, Expression)>> {
    let Value::Document(spec) = value else {
        let found = text::element("let", value);
        let kind = value.kind().alias();
        let message = format!("$lookup argument '{found}' must be an object, is type {kind}");
        return Err(Error::failed_to_parse(message));
    };
    spec.iter()
        .map(|(name, value)| {
            if !name.starts_with(|first: char| first.is_ascii_lowercase() || !first.is_ascii()) {
                let message = format!("'{name}' starts with an invalid character for a user variable name");
                return Err(Error::new(Code::FAILED_TO_PARSE, message));
            }
            Ok((name.into(), Expression::parse(value, context)?))
        })
        .collect()
}
