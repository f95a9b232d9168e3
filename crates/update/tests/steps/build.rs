//! Builders of the cases, and the functions that run them.

use aggregate::Pipeline;
use document::{ArrayWriter, Doc, DocBuf, DocWriter, Value, ValueBuf};
use query::{Context, Expression, MatchDetails, Predicate};
use update::Update;

pub fn context() -> Context {
    Context::at(0)
}

pub fn document(write: impl FnOnce(&mut DocWriter<'_>)) -> DocBuf {
    DocBuf::build(write)
}

pub fn array(write: impl FnOnce(&mut ArrayWriter<'_>)) -> ValueBuf {
    let mut bytes = Vec::new();
    write(&mut ArrayWriter::begin(&mut bytes));
    ValueBuf::from_raw(document::Kind::Array, bytes)
}

/// Returns `{name: value}`.
pub fn one<'v>(name: &str, value: impl Into<Value<'v>>) -> DocBuf {
    document(|writer| writer.append(name, value))
}

/// Returns `{outer: {name: value}}`.
pub fn two<'v>(outer: &str, name: &str, value: impl Into<Value<'v>>) -> DocBuf {
    one(outer, &one(name, value))
}

/// Returns the numbers in descending order.
pub fn numbers(count: usize) -> ValueBuf {
    array(|writer| (0..count).rev().for_each(|number| writer.push(number as i32)))
}

/// Returns `[make(0), …]`.
pub fn list(count: usize, make: impl Fn(usize) -> DocBuf) -> ValueBuf {
    array(|writer| (0..count).for_each(|number| writer.push(&make(number))))
}

/// Returns `{f0: value, …}`, the last name first.
pub fn fields<'v, V: Into<Value<'v>>>(count: usize, value: impl Fn(usize) -> V) -> DocBuf {
    document(|writer| (0..count).rev().for_each(|number| writer.append(&format!("f{number}"), value(number))))
}

pub fn text(count: usize) -> String {
    "ab ".repeat(count)
}

/// Parses a filter and tests a document.
pub fn filter(filter: &DocBuf, tested: &DocBuf) {
    let predicate = Predicate::parse_query(filter.as_doc(), &context()).unwrap();
    let _ = predicate.matches(tested.as_doc()).unwrap();
    let _ = (predicate.describe(filter.as_doc()), predicate.shape());
}

/// Parses an update and applies it.
pub fn update(spec: &DocBuf, filters: Option<&ValueBuf>, changed: &DocBuf) {
    let filters = filters.and_then(|filters| filters.as_value().as_array());
    let update = Update::parse(Value::Document(spec.as_doc()), filters, &context()).unwrap();
    update.apply(changed.as_doc(), &MatchDetails::default(), &mut Vec::new()).unwrap();
}

/// Parses an expression and evaluates it.
pub fn expression(spec: &DocBuf, root: &DocBuf) {
    let expression = Expression::parse(Value::Document(spec.as_doc()), &context()).unwrap();
    expression.evaluate(root.as_doc()).unwrap();
}

/// Parses a pipeline and pushes documents through it.
pub fn pipeline(stages: &[DocBuf], input: &[DocBuf]) {
    let stages = array(|writer| stages.iter().for_each(|stage| writer.push(stage)));
    let stages = stages.as_value();
    let pipeline = Pipeline::parse(stages.as_array().unwrap_or(Doc::EMPTY), &context()).unwrap();
    let mut execution = pipeline.start(64 << 20);
    for document in input {
        execution.push(document.as_doc()).unwrap();
    }
    execution.finish().unwrap();
    while execution.pop().is_some() {}
}

pub fn documents(count: usize, make: impl Fn(usize) -> DocBuf) -> Vec<DocBuf> {
    (0..count).map(make).collect()
}

pub fn numbered(count: usize) -> Vec<DocBuf> {
    documents(count, |number| {
        document(|writer| {
            writer.append("_id", number as i32);
            writer.append("x", (number * 7919 % count) as i32);
        })
    })
}

pub fn empty() -> DocBuf {
    DocBuf::new()
}

pub fn with_numbers(count: usize) -> DocBuf {
    one("a", &numbers(count))
}

pub fn with_text(count: usize) -> DocBuf {
    one("a", text(count).as_str())
}

/// Returns `{operator: ["$a", "$a"]}`, or with other arguments.
pub fn call(operator: &str, arguments: &[Value<'_>]) -> DocBuf {
    one(operator, &array(|writer| arguments.iter().for_each(|argument| writer.push(*argument))))
}

pub fn each_of(operator: &str, input: &str, body: &DocBuf, body_name: &str) -> DocBuf {
    one(
        operator,
        &document(|writer| {
            writer.append("input", input);
            writer.append(body_name, body);
        }),
    )
}

pub fn polygon(count: usize) -> DocBuf {
    let corner = |number: usize| {
        let angle = (number % count) as f64 / count as f64 * std::f64::consts::TAU;
        array(|writer| {
            writer.push(angle.cos() * 10.0);
            writer.push(angle.sin() * 10.0);
        })
    };
    let ring = array(|writer| (0..=count).for_each(|number| writer.push(&corner(number))));
    document(|writer| {
        writer.append("type", "Polygon");
        writer.append("coordinates", &array(|writer| writer.push(&ring)));
    })
}

pub fn point() -> DocBuf {
    one("g", &array(|writer| [1.0, 2.0].into_iter().for_each(|number| writer.push(number))))
}

pub fn window(function: &str) -> DocBuf {
    one(
        "$setWindowFields",
        &document(|writer| {
            writer.append("sortBy", &one("x", 1));
            writer.append(
                "output",
                &one(
                    "s",
                    &document(|writer| {
                        writer.append(function, "$x");
                        let bounds = array(|writer| [-3, 3].into_iter().for_each(|number| writer.push(number)));
                        writer.append("window", &one("documents", &bounds));
                    }),
                ),
            );
        }),
    )
}

pub fn group(accumulator: &DocBuf) -> DocBuf {
    one(
        "$group",
        &document(|writer| {
            writer.append("_id", Value::Null);
            writer.append("v", accumulator);
        }),
    )
}

pub fn as_many(operator: &str, count: usize, input: (&str, Value<'_>), order: Option<DocBuf>) -> DocBuf {
    one(
        operator,
        &document(|writer| {
            writer.append("n", count as i32);
            writer.append(input.0, input.1);
            order.iter().for_each(|order| writer.append("sortBy", order));
        }),
    )
}
