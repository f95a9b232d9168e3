//! The reasons why a document fails validation, clause by clause, in MongoDB's format.
//!
//! The filter is split into its clauses; each is matched alone, by a filter that has only that
//! clause.

use super::schema;
use document::path::{End, Path};
use document::{ArrayWriter, Doc, DocBuf, DocWriter, Value};
use query::{Context, Expression, Predicate};
use std::ops::ControlFlow;

/// A clause of a filter.
enum Clause<'f> {
    And(Vec<Clause<'f>>),
    Or(Vec<Clause<'f>>),
    Nor(Vec<Clause<'f>>),
    Not(Box<Clause<'f>>),
    /// One operator on one path.
    Operator {
        path: &'f str,
        name: &'f str,
        /// `{path: {operator: argument}}`, or `{path: value}`.
        specified: DocBuf,
        argument: Value<'f>,
    },
    Expression(Value<'f>),
    Schema(Doc<'f>),
    /// A clause without an explanation.
    Other(&'f str, Value<'f>),
}

/// Writes `details`.
pub fn write(filter: Doc<'_>, document: Doc<'_>, context: &Context, info: &mut DocWriter<'_>) {
    let details = DetailsWriter { document, context };
    let mut clauses = top_level(filter);
    let clause = match clauses.len() {
        1 => clauses.remove(0),
        _ => Clause::And(clauses),
    };
    if let Some(Clause::Other(name, argument)) = clause.unexplained() {
        info.append("note", "failed to generate document validation error");
        let mut details = info.document("details");
        details.append("code", 4_994_600);
        details.append("codeName", "Location4994600");
        let mut text = String::new();
        crate::duplicate::write_value(*argument, &mut text);
        let message = format!(
            "Cannot generate validation error details: no annotation found for expression {{ {name}: {text} }}"
        );
        details.append("errmsg", &*message);
        return;
    }
    details.clause(&clause, false, &mut info.document("details"));
}

fn top_level<'f>(filter: Doc<'f>) -> Vec<Clause<'f>> {
    let mut clauses = Vec::new();
    for (key, value) in filter.iter() {
        match (key, value) {
            ("$comment", _) => {}
            ("$and", Value::Array(all)) => clauses.push(Clause::And(each(all))),
            ("$or", Value::Array(all)) => clauses.push(Clause::Or(each(all))),
            ("$nor", Value::Array(all)) => clauses.push(Clause::Nor(each(all))),
            ("$expr", expression) => clauses.push(Clause::Expression(expression)),
            ("$jsonSchema", Value::Document(schema)) => clauses.push(Clause::Schema(schema)),
            (other, value) if other.starts_with('$') => clauses.push(Clause::Other(other, value)),
            (path, condition) => clauses.extend(on_path(path, condition)),
        }
    }
    clauses
}

/// Splits `$and`, `$or` and `$nor` into their filters, each a clause of its own.
fn each(filters: Doc<'_>) -> Vec<Clause<'_>> {
    let clause = |filter| {
        let mut clauses = top_level(filter);
        if clauses.len() == 1 { clauses.remove(0) } else { Clause::And(clauses) }
    };
    filters.values().filter_map(Value::as_document).map(clause).collect()
}

fn on_path<'f>(path: &'f str, condition: Value<'f>) -> Vec<Clause<'f>> {
    let operators = condition.as_document().filter(|inner| inner.first().is_some_and(|it| it.key().starts_with('$')));
    let Some(operators) = operators else {
        let mut specified = DocBuf::new();
        specified.append(path, condition);
        let name = if matches!(condition, Value::Regex { .. }) { "$regex" } else { "$eq" };
        return vec![Clause::Operator { path, name, specified, argument: condition }];
    };
    let mut clauses = Vec::new();
    for (name, argument) in operators.iter() {
        match (name, argument) {
            ("$options", _) => {}
            ("$not", argument) => {
                let mut inner = on_path(path, argument);
                let inner = if inner.len() == 1 { inner.remove(0) } else { Clause::And(inner) };
                clauses.push(Clause::Not(Box::new(inner)));
            }
            (name, argument) => {
                let specified = DocBuf::build(|writer| {
                    let mut condition = writer.document(path);
                    condition.append(name, argument);
                    if let Some(options) = operators.get("$options").filter(|_| name == "$regex") {
                        condition.append("$options", options);
                    }
                });
                clauses.push(Clause::Operator { path, name, specified, argument });
            }
        }
    }
    clauses
}

impl Clause<'_> {
    /// Returns a nested clause that has no explanation, if there is one.
    fn unexplained(&self) -> Option<&Clause<'_>> {
        match self {
            Clause::And(all) | Clause::Or(all) | Clause::Nor(all) => all.iter().find_map(Clause::unexplained),
            Clause::Not(inner) => inner.unexplained(),
            Clause::Other(..) => Some(self),
            _ => None,
        }
    }
}

struct DetailsWriter<'t> {
    document: Doc<'t>,
    context: &'t Context,
}

impl DetailsWriter<'_> {
    fn matches(&self, clause: &Clause<'_>) -> bool {
        match clause {
            Clause::And(all) => all.iter().all(|clause| self.matches(clause)),
            Clause::Or(any) => any.iter().any(|clause| self.matches(clause)),
            Clause::Nor(none) => !none.iter().any(|clause| self.matches(clause)),
            Clause::Not(inner) => !self.matches(inner),
            Clause::Operator { specified, .. } => self.matches_filter(specified),
            Clause::Expression(expression) => self.matches_filter(&single("$expr", *expression)),
            Clause::Schema(schema) => self.matches_filter(&single("$jsonSchema", Value::Document(*schema))),
            Clause::Other(name, argument) => self.matches_filter(&single(name, *argument)),
        }
    }

    fn matches_filter(&self, filter: &DocBuf) -> bool {
        let predicate = Predicate::parse(filter.as_doc(), self.context);
        predicate.is_ok_and(|predicate| predicate.matches(self.document).unwrap_or(false))
    }

    /// Writes why a clause does not match, or (`inverted`: below a `$not` or `$nor`) why it does.
    fn clause(&self, clause: &Clause<'_>, inverted: bool, writer: &mut DocWriter<'_>) {
        match clause {
            Clause::And(all) => self.clauses("$and", all, inverted, writer),
            Clause::Or(all) => self.clauses("$or", all, inverted, writer),
            Clause::Nor(all) => self.clauses("$nor", all, !inverted, writer),
            Clause::Not(inner) => {
                writer.append("operatorName", "$not");
                self.clause(inner, !inverted, &mut writer.document("details"));
            }
            Clause::Operator { path, name, specified, argument } => {
                writer.append("operatorName", *name);
                writer.append("specifiedAs", specified);
                self.operator(path, name, *argument, inverted, writer);
            }
            Clause::Expression(expression) => {
                writer.append("operatorName", "$expr");
                writer.append("specifiedAs", &single("$expr", *expression));
                writer.append("reason", if inverted { "expression did match" } else { "expression did not match" });
                if let Ok(expression) = Expression::parse(*expression, self.context) {
                    // If the expression fails, the result is left out.
                    let _ = expression.evaluate_into(self.document, writer, "expressionResult");
                }
            }
            Clause::Schema(_) if inverted => {
                writer.append("operatorName", "$jsonSchema");
                writer.append("reason", "schema matched");
            }
            Clause::Schema(schema) => schema::write(*schema, self.document, writer),
            Clause::Other(name, _) => writer.append("operatorName", *name),
        }
    }

    fn clauses(&self, name: &str, all: &[Clause<'_>], satisfied: bool, writer: &mut DocWriter<'_>) {
        writer.append("operatorName", name);
        let key = if satisfied { "clausesSatisfied" } else { "clausesNotSatisfied" };
        let mut array: ArrayWriter<'_> = writer.array(key);
        for (index, clause) in all.iter().enumerate().filter(|(_, clause)| self.matches(clause) == satisfied) {
            let mut entry = array.document();
            entry.append("index", index as i32);
            self.clause(clause, satisfied, &mut entry.document("details"));
        }
    }

    fn operator(&self, path: &str, name: &str, argument: Value<'_>, inverted: bool, writer: &mut DocWriter<'_>) {
        let whole = matches!(name, "$all" | "$size" | "$elemMatch");
        let values = self.values(path, whole);
        if name == "$exists" {
            let exists = argument.is_truthy() == inverted;
            writer.append("reason", if exists { "path does exist" } else { "path does not exist" });
            return;
        }
        let Some(values) = values else {
            writer.append("reason", "field was missing");
            return;
        };
        let expected = expected_types(name);
        let is_expected = |value: &Value<'_>| expected.contains(&value.kind().alias());
        if !expected.is_empty() && !inverted && !values.iter().any(is_expected) {
            writer.append("reason", "type did not match");
            write_some(writer, ["consideredType", "consideredTypes"], &types(&values));
            write_some(writer, ["expectedType", "expectedTypes"], expected);
            write_considered(writer, &values);
            return;
        }
        let reason = match name {
            "$geoWithin" | "$geoIntersects" => self.reason_of_geometry(path, name, inverted),
            name => reason(name, inverted),
        };
        writer.append("reason", reason);
        write_considered(writer, &values);
        if name == "$type" {
            write_some(writer, ["consideredType", "consideredTypes"], &types(&values));
        }
    }

    /// Returns why a geometry does not match, or (`inverted`) why it should not.
    fn reason_of_geometry(&self, path: &str, name: &str, inverted: bool) -> &'static str {
        let anywhere = DocBuf::build(|writer| {
            let mut condition = writer.document(path);
            let mut within = condition.document("$geoWithin");
            let mut corners = within.array("$box");
            for corner in [f64::MIN, f64::MAX] {
                let mut position = corners.array();
                position.push(corner);
                position.push(corner);
            }
        });
        match (name, inverted) {
            (_, false) if !self.matches_filter(&anywhere) => "could not find a valid geometry at the given path",
            ("$geoWithin", false) => {
                "none of the considered geometries were contained within the expression’s geometry"
            }
            (_, false) => "none of the considered geometries intersected the expression’s geometry",
            ("$geoWithin", true) => {
                "at least one of considered geometries was contained within the expression’s geometry"
            }
            (_, true) => "at least one of considered geometries intersected the expression’s geometry",
        }
    }

    /// Returns the values that the path leads to: elements of arrays one by one, unless the array
    /// is meant as a whole. `None` if there are none.
    fn values(&self, path: &str, whole: bool) -> Option<Vec<Value<'_>>> {
        let mut values = Vec::new();
        let mut found = false;
        // Nothing breaks the visit, so it always runs to its end.
        let _ = Path::new(path).visit(self.document, End::Whole, &mut |reached| {
            match reached.value {
                Some(Value::Array(elements)) if !whole => {
                    found = true;
                    values.extend(elements.values());
                }
                Some(value) => {
                    found = true;
                    values.push(value);
                }
                None => {}
            }
            ControlFlow::Continue(())
        });
        found.then_some(values)
    }
}

/// Returns the types that an operator accepts; none if it accepts all.
fn expected_types(name: &str) -> &'static [&'static str] {
    match name {
        "$size" | "$elemMatch" => &["array"],
        "$mod" => &["decimal", "double", "int", "long"],
        "$regex" => &["regex", "string", "symbol"],
        "$bitsAllSet" | "$bitsAllClear" | "$bitsAnySet" | "$bitsAnyClear" => {
            &["binData", "decimal", "double", "int", "long"]
        }
        _ => &[],
    }
}

/// Returns the types of values, each once, in order.
fn types(values: &[Value<'_>]) -> Vec<&'static str> {
    let mut aliases: Vec<&str> = values.iter().map(|value| value.kind().alias()).collect();
    aliases.sort_unstable();
    aliases.dedup();
    aliases
}

/// Writes one type under the first name, several as an array under the second.
fn write_some(writer: &mut DocWriter<'_>, [one, several]: [&str; 2], types: &[&str]) {
    match types {
        [] => {}
        [only] => writer.append(one, *only),
        types => {
            let mut array = writer.array(several);
            types.iter().for_each(|alias| array.push(*alias));
        }
    }
}

fn write_considered(writer: &mut DocWriter<'_>, values: &[Value<'_>]) {
    match values {
        [value] => writer.append("consideredValue", *value),
        values => {
            let mut array = writer.array("consideredValues");
            values.iter().for_each(|value| array.push(*value));
        }
    }
}

fn single(name: &str, argument: Value<'_>) -> DocBuf {
    let mut filter = DocBuf::new();
    filter.append(name, argument);
    filter
}

fn reason(name: &str, inverted: bool) -> &'static str {
    match (name, inverted) {
        ("$in", false) | ("$nin", true) => "no matching value found in array",
        ("$in", true) | ("$nin", false) => "matching value found in array",
        ("$type", false) => "type did not match",
        ("$type", true) => "type did match",
        ("$mod", false) => "$mod did not evaluate to expected remainder",
        ("$mod", true) => "$mod did evaluate to expected remainder",
        ("$regex", false) => "regular expression did not match",
        ("$regex", true) => "regular expression did match",
        ("$all", false) => "array did not contain all specified values",
        ("$all", true) => "array did contain all specified values",
        ("$size", false) => "array length was not equal to given size",
        ("$size", true) => "array length was equal to given size",
        ("$elemMatch", false) => "array did not satisfy the child predicate",
        ("$elemMatch", true) => "array did satisfy the child predicate",
        ("$bitsAllSet" | "$bitsAllClear" | "$bitsAnySet" | "$bitsAnyClear", false) => {
            "bitwise operator failed to match"
        }
        ("$bitsAllSet" | "$bitsAllClear" | "$bitsAnySet" | "$bitsAnyClear", true) => {
            "bitwise operator matched successfully"
        }
        ("$ne", false) | (_, true) if !(name == "$ne" && inverted) => "comparison succeeded",
        _ => "comparison failed",
    }
}
