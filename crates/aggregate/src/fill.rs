//! `$fill`: fills null and missing fields, from neighbors or by an expression. It is translated
//! into other stages.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation/fill/>

use super::add_fields::AddFields;
use super::stage::Stage;
use super::window::SetWindowFields;
use document::{Doc, DocBuf, Kind, Value};
use error::{Code, Error, Result};
use query::Context;
use std::sync::Arc;
use steps::Counted;

/// Returns the stages that a `$fill` is translated into.
pub(super) fn parse(spec: Value<'_>, context: &Context) -> Result<Vec<Stage>> {
    let Value::Document(spec) = spec else {
        let kind = spec.kind().alias();
        let message = format!("The $fill stage specification must be an object, found {kind}");
        return Err(Error::failed_to_parse(message));
    };
    let (mut partition, mut fields, mut sort, mut output) = (None, None, None, None);
    for (name, value) in spec.iter() {
        match name {
            "partitionBy" | "sortBy" | "output" if value.kind() == Kind::Null => {}
            "partitionBy" => partition = Some(object(name, value)?),
            "partitionByFields" => fields = Some(partition_by_fields(value)?),
            "sortBy" => sort = Some(object(name, value)?),
            "output" => output = Some(object(name, value)?),
            other => return Err(unknown(other)),
        }
    }
    let output =
        output.ok_or_else(|| Error::new(Code(40414), "BSON field '$fill.output' is missing but a required field"))?;
    if output.is_empty() {
        let message = "The output field in '$fill' must contain an object with at least one element";
        return Err(Error::new(Code(6050203), message));
    }
    if partition.is_some() && fields.is_some() {
        let message = "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
        return Err(Error::new(Code(6050204), message));
    }
    let (mut windows, mut values) = (DocBuf::new(), DocBuf::new());
    for (path, value) in output.iter().counted() {
        match parse_method(value)? {
            FillMethod::Window(function) => windows.append(path, &call_with_path(function, path)),
            FillMethod::Value(value) => values.append(path, &if_null(path, value)),
            FillMethod::NoOp => {}
        }
    }
    let mut stages = Vec::new();
    if !windows.as_doc().is_empty() {
        let spec = DocBuf::build(|writer| {
            if let Some(partition) = partition {
                writer.append("partitionBy", Value::Document(partition));
            }
            if let Some(fields) = &fields {
                writer.append("partitionBy", fields);
            }
            if let Some(sort) = sort {
                writer.append("sortBy", Value::Document(sort));
            }
            writer.append("output", &windows);
        });
        let stage = SetWindowFields::parse(Value::Document(spec.as_doc()), context)?;
        stages.push(Stage::SetWindowFields(Arc::new(stage)));
    }
    if !values.as_doc().is_empty() {
        let stage = AddFields::parse("$addFields", Value::Document(values.as_doc()), context)?;
        stages.push(Stage::AddFields(Arc::new(stage)));
    }
    Ok(stages)
}

fn unknown(name: &str) -> Error {
    Error::new(Code(40415), format!("BSON field '$fill.{name}' is an unknown field."))
}

fn wrong_type(name: &str, value: Value<'_>, expected: &str) -> Error {
    let kind = value.kind().alias();
    Error::type_mismatch(format!("BSON field '$fill.{name}' is the wrong type '{kind}', expected type '{expected}'"))
}

fn object<'v>(name: &str, value: Value<'v>) -> Result<Doc<'v>> {
    value.as_document().ok_or_else(|| wrong_type(name, value, "object"))
}

/// Returns the names as an object of expressions.
fn partition_by_fields(value: Value<'_>) -> Result<DocBuf> {
    if value.kind() == Kind::Null {
        return Err(Error::new(Code(10065), "invalid parameter: expected an object (partitionByFields)"));
    }
    let list = value.as_array().ok_or_else(|| wrong_type("partitionByFields", value, "array"))?;
    let mut object = DocBuf::new();
    for (index, value) in list.values().counted().enumerate() {
        let name = value.as_name().ok_or_else(|| wrong_type(&format!("partitionByFields.{index}"), value, "string"))?;
        object.append(&name, format!("${name}").as_str());
    }
    Ok(object)
}

enum FillMethod<'v> {
    Window(&'static str),
    Value(Value<'v>),
    /// An empty specification is allowed, and has no effect.
    NoOp,
}

fn parse_method(value: Value<'_>) -> Result<FillMethod<'_>> {
    let Value::Document(spec) = value else {
        let message = "Each fill output specification must be an object with exactly one field";
        return Err(Error::new(Code(6050200), message));
    };
    let mut method = FillMethod::NoOp;
    let (mut has_method, mut has_value) = (false, false);
    for (name, value) in spec.iter() {
        match (name, value) {
            ("method", Value::String("linear")) => (method, has_method) = (FillMethod::Window("$linearFill"), true),
            ("method", Value::String("locf")) => (method, has_method) = (FillMethod::Window("$locf"), true),
            ("method", Value::String(_)) => {
                return Err(Error::new(Code(6050202), "Method must be either locf or linear"));
            }
            ("method", other) => return Err(wrong_type("method", other, "string")),
            ("value", value) => (method, has_value) = (FillMethod::Value(value), true),
            (other, _) => return Err(unknown(other)),
        }
    }
    if has_method && has_value {
        let message = "Each fill output specification must have exactly one of 'method' or 'value' fields, not both";
        return Err(Error::new(Code(6050201), message));
    }
    Ok(method)
}

fn call_with_path(function: &str, path: &str) -> DocBuf {
    DocBuf::build(|writer| writer.append(function, format!("${path}").as_str()))
}

/// Returns `{$ifNull: ["$path", value]}`.
fn if_null(path: &str, value: Value<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        let mut arguments = writer.array("$ifNull");
        arguments.push(format!("${path}").as_str());
        arguments.push(value);
    })
}
