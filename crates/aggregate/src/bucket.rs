//! `$bucket`: a `$group` by the boundaries between which values fall.

use super::boundaries::Boundaries;
use super::group::Group;
use super::reshape::{is_expression, quoted};
use super::stage::Stage;
use document::compare::kind_rank;
use document::{DocBuf, Kind, Value, ValueBuf, doc};
use error::{Code, Error, Result};
use query::{Context, Expression, Sort};
use std::sync::Arc;
use steps::Counted;
use values::text::display;

/// Translates a `$bucket` into two stages: groups, and a sort by their boundaries.
pub(super) fn parse(spec: Value<'_>, context: &Context) -> Result<[Stage; 2]> {
    let Value::Document(spec) = spec else {
        let kind = spec.kind().alias();
        return Err(Error::new(
            Code(40201),
            format!("Argument to $bucket stage must be an object, but found type: {kind}."),
        ));
    };
    let (mut group_by, mut boundaries, mut default, mut output) = (None, None, None, None);
    for (name, value) in spec.iter() {
        match name {
            "groupBy" if !is_expression(value) => {
                let message = format!(
                    "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {}.",
                    quoted(value)
                );
                return Err(Error::new(Code(40202), message));
            }
            "groupBy" => group_by = Some(value),
            "boundaries" => boundaries = Some(parse_boundaries(value, context)?),
            "default" => {
                default =
                    Some(constant(value, context, 40195, "'default' field must be a constant expression, but found")?)
            }
            "output" => {
                output = Some(value.as_document().ok_or_else(|| {
                    let kind = value.kind().alias();
                    Error::new(
                        Code(40196),
                        format!("The $bucket 'output' field must be an object, but found type: {kind}."),
                    )
                })?);
            }
            _ => return Err(Error::new(Code(40197), format!("Unrecognized option to $bucket: {name}."))),
        }
    }
    let (Some(group_by), Some(values)) = (group_by, boundaries) else {
        return Err(Error::new(Code(40198), "$bucket requires 'groupBy' and 'boundaries' to be specified."));
    };
    let boundaries = Boundaries { values, default, collation: context.collation.clone() };
    check_default(&boundaries)?;
    let counting = doc! { "count": &doc! { "$sum": 1 } };
    let group = Group::by_boundaries(group_by, boundaries, output.unwrap_or(counting.as_doc()), context)?;
    Ok([Stage::Group(Arc::new(group)), sort_by_id(context)?])
}

fn sort_by_id(context: &Context) -> Result<Stage> {
    let order: DocBuf = doc! { "_id": 1 };
    Ok(Stage::Sort { sort: Sort::parse_stage(order.as_doc(), context)?, limit: None })
}

fn constant(value: Value<'_>, context: &Context, code: i32, complaint: &str) -> Result<ValueBuf> {
    let (expression, failure) = Expression::parse_folding(value, context)?;
    failure.map_or(Ok(()), Err)?;
    let constant = expression.as_literal().map(Value::to_owned);
    constant.ok_or_else(|| Error::new(Code(code), format!("The $bucket {complaint}: {}.", quoted(value))))
}

fn parse_boundaries(value: Value<'_>, context: &Context) -> Result<Vec<ValueBuf>> {
    let Value::Array(list) = value else {
        let kind = value.kind().alias();
        return Err(Error::new(
            Code(40200),
            format!("The $bucket 'boundaries' field must be an array, but found type: {kind}."),
        ));
    };
    let complaint = "'boundaries' field must be an array of constant values, but found value";
    let values =
        list.values().counted().map(|value| constant(value, context, 40191, complaint)).collect::<Result<Vec<_>>>()?;
    if values.len() < 2 {
        let message =
            format!("The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).", values.len());
        return Err(Error::new(Code(40192), message));
    }
    for (index, pair) in values.windows(2).enumerate() {
        steps::step();
        let [low, high] = pair else { continue };
        if kind_rank(low.kind()) != kind_rank(high.kind()) {
            return Err(Error::new(
                Code(40193),
                format!(
                    "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types \
                     {} and {}.",
                    low.kind().alias(),
                    high.kind().alias()
                ),
            ));
        }
        if context.collation.compare(low.as_value(), high.as_value()).is_ge() {
            return Err(Error::new(
                Code(40194),
                format!(
                    "The 'boundaries' option to $bucket must be sorted, but elements {index} and {} are not in ascending \
                     order ({} is not less than {}).",
                    index + 1,
                    display(low.as_value()),
                    display(high.as_value())
                ),
            ));
        }
    }
    Ok(values)
}

/// Fails if the default is inside the boundaries, where it would be the key of another bucket.
fn check_default(boundaries: &Boundaries) -> Result<()> {
    let Some(default) = &boundaries.default else { return Ok(()) };
    let (Some(low), Some(high)) = (boundaries.values.first(), boundaries.values.last()) else { return Ok(()) };
    let default = default.as_value();
    let compare = |boundary: &ValueBuf| boundaries.collation.compare(default, boundary.as_value());
    if compare(low).is_ge() && compare(high).is_lt() {
        let message = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the \
                       highest boundary.";
        return Err(Error::new(Code(40199), message));
    }
    Ok(())
}

/// `$sortByCount`: groups with their sizes, the largest first.
pub(super) fn parse_sort_by_count(spec: Value<'_>, context: &Context) -> Result<[Stage; 2]> {
    let unfit = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
    match spec {
        Value::Document(_) if !is_expression(spec) => return Err(Error::new(Code(40147), unfit)),
        _ if spec.kind() == Kind::String && !is_expression(spec) => return Err(Error::new(Code(40148), unfit)),
        _ if matches!(spec.kind(), Kind::Document | Kind::String) => {}
        _ => {
            let message = "the sortByCount field must be specified as a string or as an object";
            return Err(Error::new(Code(40149), message));
        }
    }
    let order = doc! { "count": -1 };
    let sort = Sort::parse_stage(order.as_doc(), context)?;
    Ok([Stage::Group(Arc::new(Group::for_sort_by_count(spec, context)?)), Stage::Sort { sort, limit: None }])
}
