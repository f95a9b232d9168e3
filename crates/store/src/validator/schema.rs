//! The rules of a `$jsonSchema` that a value breaks, in MongoDB's format.
//!
//! Each keyword is checked alone, by a schema that has only that keyword; matching is up to the
//! query language.

use document::{ArrayWriter, Doc, DocBuf, DocWriter, Value, ValueBuf, compare};
use query::{Context, Predicate};

/// The keywords, in the order in which they are reported.
const KEYWORDS: [&str; 25] = [
    "bsonType",
    "type",
    "multipleOf",
    "maximum",
    "minimum",
    "pattern",
    "maxLength",
    "minLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "additionalItems",
    "properties",
    "additionalProperties",
    "patternProperties",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "enum",
];

/// Writes the explanation for a document that does not match the schema.
pub fn write(schema: Doc<'_>, document: Doc<'_>, writer: &mut DocWriter<'_>) {
    writer.append("operatorName", "$jsonSchema");
    let value = Value::Document(document);
    if ["bsonType", "type"].iter().any(|keyword| breaks(&alone(schema, keyword), value)) {
        writer.document("specifiedAs").append("$jsonSchema", schema);
        writer.append("reason", "expression always evaluates to false");
        return;
    }
    write_annotations(schema, writer);
    rules(schema, value, writer.array("schemaRulesNotSatisfied"));
}

fn write_annotations(schema: Doc<'_>, writer: &mut DocWriter<'_>) {
    for key in ["title", "description"] {
        if let Some(text) = schema.get(key) {
            writer.append(key, text);
        }
    }
}

/// Writes a document for each rule that the value breaks.
fn rules(schema: Doc<'_>, value: Value<'_>, mut array: ArrayWriter<'_>) {
    for keyword in KEYWORDS {
        let single = alone(schema, keyword);
        if single.as_doc().is_empty() || !breaks(&single, value) {
            continue;
        }
        rule(keyword, schema, value, &mut array.document());
        if matches!(keyword, "bsonType" | "type") {
            // The remaining rules assume a value of that type.
            return;
        }
    }
}

/// Returns the schema with one keyword and those that it depends on.
fn alone(schema: Doc<'_>, keyword: &str) -> DocBuf {
    let companions: &[&str] = match keyword {
        "minimum" => &["exclusiveMinimum"],
        "maximum" => &["exclusiveMaximum"],
        "additionalItems" => &["items"],
        "additionalProperties" => &["properties", "patternProperties"],
        _ => &[],
    };
    DocBuf::build(|writer| {
        let Some(value) = schema.get(keyword) else { return };
        writer.append(keyword, value);
        for companion in companions {
            match (*companion, schema.get(companion)) {
                // Only the presence of properties matters here, not their schemas.
                ("properties" | "patternProperties", Some(Value::Document(named))) => {
                    let mut names = writer.document(companion);
                    named.iter().for_each(|(name, _)| drop(names.document(name)));
                }
                ("items", Some(Value::Array(items))) => {
                    let mut any = writer.array(companion);
                    items.values().for_each(|_| drop(any.document()));
                }
                (_, Some(value)) => writer.append(companion, value),
                (_, None) => {}
            }
        }
    })
}

/// Returns whether the value does not match the schema. An invalid schema matches: `create` has
/// refused it already.
fn breaks(schema: &DocBuf, value: Value<'_>) -> bool {
    let filter = DocBuf::build(|writer| {
        writer.document("$jsonSchema").document("properties").append("v", schema);
    });
    let mut document = DocBuf::new();
    document.append("v", value);
    let predicate = Predicate::parse(filter.as_doc(), &Context::at(0));
    predicate.is_ok_and(|predicate| predicate.matches(document.as_doc()).is_ok_and(|matches| !matches))
}

fn rule(keyword: &str, schema: Doc<'_>, value: Value<'_>, rule: &mut DocWriter<'_>) {
    rule.append("operatorName", keyword);
    let argument = schema.get(keyword).unwrap_or(Value::Null);
    match keyword {
        "properties" => return properties(argument, value, rule),
        "patternProperties" => return pattern_properties(argument, value, rule),
        "dependencies" => return dependencies(argument, value, rule),
        "allOf" | "anyOf" | "oneOf" => return alternatives(keyword, argument, value, rule),
        "items" => return items(argument, value, rule),
        "not" => return rule.append("reason", "child expression matched"),
        "additionalProperties" | "additionalItems" if argument.as_document().is_some() => {
            return additional_by_schema(keyword, schema, value, rule);
        }
        _ => {}
    }
    {
        let mut specified = rule.document("specifiedAs");
        specified.append(keyword, argument);
        let exclusive = match keyword {
            "minimum" => "exclusiveMinimum",
            "maximum" => "exclusiveMaximum",
            _ => "",
        };
        if let Some(flag) = schema.get(exclusive) {
            specified.append(exclusive, flag);
        }
    }
    match keyword {
        "required" => {
            let missing = missing(argument, value);
            let mut array = rule.array("missingProperties");
            missing.iter().for_each(|name| array.push(*name));
        }
        "additionalProperties" => {
            let mut array = rule.array("additionalProperties");
            additional_names(schema, value).iter().for_each(|name| array.push(*name));
        }
        "additionalItems" => {
            rule.append("reason", "found additional items");
            let mut array = rule.array("additionalItems");
            additional_items(schema, value).for_each(|(_, item)| array.push(item));
        }
        "minProperties" | "maxProperties" => {
            rule.append("reason", "specified number of properties was not satisfied");
            rule.append("numberOfProperties", length(value));
        }
        _ => scalar(keyword, value, rule),
    }
}

fn scalar(keyword: &str, value: Value<'_>, rule: &mut DocWriter<'_>) {
    let reason = match keyword {
        "bsonType" | "type" => "type did not match",
        "multipleOf" => "considered value is not a multiple of the specified value",
        "minLength" | "maxLength" => "specified string length was not satisfied",
        "pattern" => "regular expression did not match",
        "enum" => "value was not found in enum",
        "minItems" | "maxItems" => "array did not match specified length",
        "uniqueItems" => "found a duplicate item",
        _ => "comparison failed",
    };
    rule.append("reason", reason);
    rule.append("consideredValue", value);
    match keyword {
        "bsonType" | "type" => rule.append("consideredType", value.kind().alias()),
        "minItems" | "maxItems" => rule.append("numberOfItems", length(value)),
        "uniqueItems" => {
            let items: Vec<Value<'_>> = inner(value).values().collect();
            let is_again = |at: usize, item: Value<'_>| items.iter().take(at).any(|it| compare::equal(*it, item));
            if let Some((_, item)) = items.iter().enumerate().find(|(at, item)| is_again(*at, **item)) {
                rule.append("duplicatedValue", *item);
            }
        }
        _ => {}
    }
}

/// Returns the fields of a document or the elements of an array; none of another value.
fn inner(value: Value<'_>) -> Doc<'_> {
    value.as_document().or(value.as_array()).unwrap_or(Doc::EMPTY)
}

fn length(value: Value<'_>) -> i32 {
    i32::try_from(inner(value).elements().count()).unwrap_or(i32::MAX)
}

fn missing<'a>(required: Value<'a>, value: Value<'_>) -> Vec<&'a str> {
    let names = inner(required).values().filter_map(Value::as_str);
    let mut missing: Vec<&str> = names.filter(|name| inner(value).get(name).is_none()).collect();
    missing.sort_unstable();
    missing
}

fn properties(schemas: Value<'_>, value: Value<'_>, rule: &mut DocWriter<'_>) {
    let mut array = rule.array("propertiesNotSatisfied");
    for (name, schema) in inner(schemas).iter() {
        let (Some(schema), Some(property)) = (schema.as_document(), inner(value).get(name)) else { continue };
        if breaks(&schema.to_owned(), property) {
            let mut entry = array.document();
            entry.append("propertyName", name);
            write_annotations(schema, &mut entry);
            rules(schema, property, entry.array("details"));
        }
    }
}

fn pattern_properties(schemas: Value<'_>, value: Value<'_>, rule: &mut DocWriter<'_>) {
    let mut array = rule.array("details");
    for (pattern, schema) in inner(schemas).iter() {
        let Some(schema) = schema.as_document() else { continue };
        for (name, property) in inner(value).iter() {
            if has_pattern(name, pattern) && breaks(&schema.to_owned(), property) {
                let mut entry = array.document();
                entry.append("propertyName", name);
                entry.append("regexMatched", pattern);
                rules(schema, property, entry.array("details"));
            }
        }
    }
}

fn has_pattern(name: &str, pattern: &str) -> bool {
    let schema = document::doc! { "pattern": pattern };
    !breaks(&schema, Value::String(name))
}

fn dependencies(dependencies: Value<'_>, value: Value<'_>, rule: &mut DocWriter<'_>) {
    let mut array = rule.array("failingDependencies");
    for (name, dependency) in inner(dependencies).iter().filter(|(name, _)| inner(value).get(name).is_some()) {
        match dependency {
            Value::Array(_) => {
                let missing = missing(dependency, value);
                if !missing.is_empty() {
                    let mut entry = array.document();
                    entry.append("conditionalProperty", name);
                    let mut names = entry.array("missingProperties");
                    missing.iter().for_each(|name| names.push(*name));
                }
            }
            Value::Document(schema) if breaks(&schema.to_owned(), value) => {
                let mut entry = array.document();
                entry.append("conditionalProperty", name);
                rules(schema, value, entry.array("details"));
            }
            _ => {}
        }
    }
}

fn alternatives(keyword: &str, schemas: Value<'_>, value: Value<'_>, rule: &mut DocWriter<'_>) {
    let schemas: Vec<Doc<'_>> = inner(schemas).values().filter_map(Value::as_document).collect();
    let broken = |schema: Doc<'_>| breaks(&schema.to_owned(), value);
    let matching = schemas.iter().filter(|schema| !broken(**schema)).count();
    if keyword == "oneOf" && matching > 1 {
        rule.append("reason", "more than one subschema matched");
        let mut array = rule.array("matchingSchemaIndexes");
        let matched = schemas.iter().enumerate().filter(|(_, schema)| !broken(**schema));
        matched.for_each(|(index, _)| array.push(index as i32));
        return;
    }
    let mut array = rule.array("schemasNotSatisfied");
    for (index, schema) in schemas.iter().enumerate().filter(|(_, schema)| broken(**schema)) {
        let mut entry = array.document();
        entry.append("index", index as i32);
        write_annotations(*schema, &mut entry);
        rules(*schema, value, entry.array("details"));
    }
}

fn items(schemas: Value<'_>, value: Value<'_>, rule: &mut DocWriter<'_>) {
    let broken = |schema: Doc<'_>, item: Value<'_>| breaks(&schema.to_owned(), item);
    match schemas {
        Value::Document(schema) => {
            let found = inner(value).values().enumerate().find(|(_, item)| broken(schema, *item));
            if let Some((index, item)) = found {
                rule.append("reason", "At least one item did not match the sub-schema");
                rule.append("itemIndex", index as i32);
                rules(schema, item, rule.array("details"));
            }
        }
        schemas => {
            let mut array = rule.array("details");
            let pairs = inner(schemas).values().filter_map(Value::as_document).zip(inner(value).values());
            for (index, (schema, item)) in pairs.enumerate().filter(|(_, (schema, item))| broken(*schema, *item)) {
                let mut entry = array.document();
                entry.append("itemIndex", index as i64);
                rules(schema, item, entry.array("details"));
            }
        }
    }
}

fn additional_names<'v>(schema: Doc<'_>, value: Value<'v>) -> Vec<&'v str> {
    let named = schema.get("properties").map(inner).unwrap_or(Doc::EMPTY);
    let patterns = schema.get("patternProperties").map(inner).unwrap_or(Doc::EMPTY);
    let known =
        |name: &str| named.get(name).is_some() || patterns.elements().any(|pattern| has_pattern(name, pattern.key()));
    inner(value).iter().map(|(name, _)| name).filter(|name| !known(name)).collect()
}

fn additional_items<'v>(schema: Doc<'_>, value: Value<'v>) -> impl Iterator<Item = (usize, Value<'v>)> {
    let given = schema.get("items").map(inner).unwrap_or(Doc::EMPTY).elements().count();
    inner(value).values().enumerate().skip(given)
}

fn additional_by_schema(keyword: &str, schema: Doc<'_>, value: Value<'_>, rule: &mut DocWriter<'_>) {
    let Some(Value::Document(sub)) = schema.get(keyword) else { return };
    let broken = |value: Value<'_>| breaks(&sub.to_owned(), value);
    if keyword == "additionalItems" {
        if let Some((index, item)) = additional_items(schema, value).find(|(_, item)| broken(*item)) {
            rule.append("reason", "At least one additional item did not match the sub-schema");
            rule.append("itemIndex", index as i32);
            rules(sub, item, rule.array("details"));
        }
        return;
    }
    let found = additional_names(schema, value)
        .into_iter()
        .filter_map(|name| Some((name, inner(value).get(name)?)))
        .find(|(_, property)| broken(*property));
    if let Some((name, property)) = found {
        let property: ValueBuf = property.to_owned();
        rule.append("reason", "at least one additional property did not match the subschema");
        rule.append("failingProperty", name);
        rules(sub, property.as_value(), rule.array("details"));
    }
}
