//! From a schema document to rules. Keywords are parsed in MongoDB's order, which determines the
//! error if there are several.

use super::unordered;
use super::{Dependency, Others, Rule, Schema};
use crate::predicate::operands::{non_negative, parse_type};
use crate::predicate::type_set::TypeSet;
use document::path::Path;
use document::{Doc, Element, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::HashSet;
use std::cmp::Ordering;
use values::regex::Regex;

const KEYWORDS: [&str; 31] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "bsonType",
    "dependencies",
    "description",
    "encrypt",
    "encryptMetadata",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Keywords of the standard that MongoDB rejects.
const UNSUPPORTED: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

/// Levels of nesting; a command cannot contain deeper ones.
const DEPTH_MAX: usize = 200;

/// Parses a schema. Fails with 9 and 14 for an invalid schema, 2 and 51091 for unknown types and
/// invalid patterns.
pub(crate) fn parse_schema(schema: Doc<'_>) -> Result<Schema> {
    Parser { schema, is_top: true, depth: 0 }.parse()
}

/// Steps of parsing a schema: each keyword is searched for.
const STEPS: usize = KEYWORDS.len();

/// The parser of one schema document.
#[derive(Clone, Copy)]
struct Parser<'a> {
    schema: Doc<'a>,
    /// Whether the schema applies to the whole document: rules about other types are then not
    /// compiled.
    is_top: bool,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn parse(self) -> Result<Schema> {
        steps::steps(STEPS);
        if self.depth > DEPTH_MAX {
            return Err(Error::new(Code::OVERFLOW, "$jsonSchema nests too deep"));
        }
        self.check_keywords()?;
        let mut rules = Vec::new();
        self.parse_types(&mut rules)?;
        let mut scalar_rules = Vec::new();
        self.parse_strings(&mut scalar_rules)?;
        self.parse_numbers(&mut scalar_rules)?;
        rules.extend(scalar_rules);
        self.parse_documents(&mut rules)?;
        self.parse_arrays(&mut rules)?;
        self.parse_logic(&mut rules)?;
        Ok(Schema { rules })
    }

    fn keyword(self, name: &str) -> Option<Element<'a>> {
        self.schema.element(name)
    }

    /// Parses a schema for the same value.
    fn beside(self, schema: Doc<'_>) -> Result<Schema> {
        Parser { schema, is_top: self.is_top, depth: self.depth + 1 }.parse()
    }

    /// Parses a schema for a part of the value.
    fn within(self, schema: Doc<'_>) -> Result<Schema> {
        Parser { schema, is_top: false, depth: self.depth + 1 }.parse()
    }

    fn check_keywords(self) -> Result<()> {
        for (index, element) in self.schema.elements().enumerate() {
            let name = element.key();
            if UNSUPPORTED.contains(&name) {
                return failed(format!("$jsonSchema keyword '{name}' is not currently supported"));
            }
            if !KEYWORDS.contains(&name) {
                return failed(format!("Unknown $jsonSchema keyword: {name}"));
            }
            if self.schema.elements().take(index).any(|other| other.key() == name) {
                return failed(format!("Duplicate $jsonSchema keyword: {name}"));
            }
        }
        for name in ["title", "description"] {
            if self.keyword(name).is_some_and(|element| element.kind != Kind::String) {
                return mismatch(name, "must be of type string");
            }
        }
        Ok(())
    }

    fn parse_types(self, rules: &mut Vec<Rule>) -> Result<()> {
        let (json, bson) = (self.keyword("type"), self.keyword("bsonType"));
        let encrypt = self.keyword("encrypt");
        match (json, bson, encrypt) {
            (Some(_), Some(_), _) => {
                return failed("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'".into());
            }
            (Some(element), _, Some(_)) | (_, Some(element), Some(_)) => {
                return failed(format!(
                    "$jsonSchema keyword 'encrypt' cannot be used in conjunction with '{}', 'encrypt' implies type \
                     'bsonType::BinData'",
                    element.key()
                ));
            }
            (Some(element), ..) | (_, Some(element), _) => rules.push(Rule::Type(parse_type_keyword(element)?)),
            _ => {}
        }
        if let Some(element) = encrypt {
            rules.push(Rule::Encrypted(parse_encrypt(element)?));
        }
        if let Some(element) = self.keyword("encryptMetadata") {
            let metadata = document_of(element, "must be an object ")?;
            if metadata.is_empty() {
                return failed("$jsonSchema keyword 'encryptMetadata' cannot be an empty object ".into());
            }
            check_encryption_fields("encryptMetadata", metadata)?;
        }
        Ok(())
    }

    fn parse_strings(self, rules: &mut Vec<Rule>) -> Result<()> {
        if let Some(element) = self.keyword("pattern") {
            let Value::String(pattern) = element.value() else { return mismatch("pattern", "must be a string") };
            if !self.is_top {
                rules.push(Rule::Pattern(Regex::new(pattern, "")?));
            }
        }
        rules.extend(self.count("maxLength")?.map(Rule::LengthMax));
        rules.extend(self.count("minLength")?.map(Rule::LengthMin));
        Ok(())
    }

    fn parse_numbers(self, rules: &mut Vec<Rule>) -> Result<()> {
        if let Some(element) = self.keyword("multipleOf") {
            rules.extend(self.parse_multiple_of(element)?);
        }
        let bounds =
            [("maximum", "exclusiveMaximum", Ordering::Less), ("minimum", "exclusiveMinimum", Ordering::Greater)];
        for (name, exclusive_name, side) in bounds {
            let exclusive = match self.keyword(exclusive_name).map(Element::value) {
                None => Some(false),
                Some(Value::Boolean(flag)) => Some(flag),
                Some(_) => None,
            };
            match self.keyword(name) {
                Some(element) if !element.kind.is_number() => return mismatch(name, "must be a number"),
                Some(element) => {
                    let Some(exclusive) = exclusive else { return mismatch(exclusive_name, "must be a boolean") };
                    rules.push(Rule::Bound { operand: ValueBuf::from(element.value()), side, exclusive });
                }
                None if self.keyword(exclusive_name).is_some() => {
                    return failed(format!(
                        "$jsonSchema keyword '{name}' must be a present if {exclusive_name} is present"
                    ));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn parse_multiple_of(self, element: Element<'_>) -> Result<Option<Rule>> {
        let Some(divisor) = super::decimal_of(element.value()) else {
            return mismatch("multipleOf", "must be a number");
        };
        if !divisor.is_nan() && document::compare(element.value(), Value::Int32(0)) != Ordering::Greater {
            return failed("$jsonSchema keyword 'multipleOf' must have a positive value".into());
        }
        if self.is_top {
            return Ok(None);
        }
        if divisor.is_nan() {
            return Err(Error::bad_value("divisor cannot be NaN"));
        }
        if !values::decimal::is_finite(divisor) {
            return Err(Error::bad_value("divisor cannot be infinite"));
        }
        Ok(Some(Rule::MultipleOf(divisor)))
    }

    fn parse_documents(self, rules: &mut Vec<Rule>) -> Result<()> {
        let kind = |element: Element<'_>| element.kind.alias();
        if let Some(element) = self.keyword("required") {
            let Value::Array(names) = element.value() else {
                return mismatch(
                    "required",
                    &format!("must be an array, but found an element of type {}", kind(element)),
                );
            };
            let complaint = "must be an array of strings, but found an element of type: ";
            let names = distinct_names(
                names,
                |item| mismatch("required", &format!("{complaint}{}", kind(item))),
                |_| failed("$jsonSchema keyword 'required' array cannot contain duplicate values".into()),
            )?;
            if names.is_empty() {
                return failed("$jsonSchema keyword 'required' cannot be an empty array".into());
            }
            rules.push(Rule::Required(names));
        }
        let mut properties = Vec::new();
        if let Some(element) = self.keyword("properties") {
            for property in document_of(element, "must be an object")?.elements() {
                let Value::Document(schema) = property.value() else {
                    let name = property.key();
                    return Err(Error::type_mismatch(format!(
                        "Nested schema for $jsonSchema property '{name}' must be an object"
                    )));
                };
                properties.push((Path::new(property.key()), self.within(schema)?));
            }
        }
        let allowed = self.parse_allowed(&properties)?;
        if !properties.is_empty() {
            rules.push(Rule::Properties(properties));
        }
        rules.extend(allowed);
        rules.extend(self.count("minProperties")?.map(Rule::PropertiesMin));
        rules.extend(self.count("maxProperties")?.map(Rule::PropertiesMax));
        if let Some(element) = self.keyword("dependencies") {
            let dependencies = document_of(element, "must be an object")?;
            rules.push(Rule::Dependencies(
                dependencies.elements().map(|element| self.parse_dependency(element)).collect::<Result<_>>()?,
            ));
        }
        Ok(())
    }

    fn parse_allowed(self, properties: &[(Path, Schema)]) -> Result<Option<Rule>> {
        let mut patterns = Vec::new();
        if let Some(element) = self.keyword("patternProperties") {
            for property in document_of(element, "must be an object")?.elements() {
                let name = property.key();
                let Value::Document(schema) = property.value() else {
                    return mismatch("patternProperties", &format!("has property '{name}' which is not an object"));
                };
                let schema = self.within(schema)?;
                patterns.push((parse_name_pattern(name)?, schema));
            }
        }
        let others = match self.keyword("additionalProperties").map(Element::value) {
            None => None,
            Some(Value::Boolean(true)) => Some(Others::Allowed),
            Some(Value::Boolean(false)) => Some(Others::Forbidden),
            Some(Value::Document(schema)) => Some(Others::Match(self.within(schema)?)),
            Some(_) => return mismatch("additionalProperties", "must be an object or a boolean"),
        };
        if patterns.is_empty() && others.is_none() {
            return Ok(None);
        }
        let named = properties.iter().map(|(path, _)| path.as_str().into()).collect();
        Ok(Some(Rule::Allowed { named, patterns, others: others.unwrap_or(Others::Allowed) }))
    }

    fn parse_dependency(self, element: Element<'_>) -> Result<(Path, Dependency)> {
        let name = element.key();
        let dependency = match element.value() {
            Value::Document(schema) => Dependency::Schema(self.beside(schema)?),
            Value::Array(names) if names.is_empty() => {
                return failed(format!(
                    "property '{name}' in $jsonSchema keyword 'dependencies' cannot be an empty array"
                ));
            }
            Value::Array(names) => Dependency::Properties(distinct_names(
                names,
                |item| {
                    Err(Error::type_mismatch(format!(
                        "array '{name}' in $jsonSchema keyword 'dependencies' can only contain strings, but found element \
                         of type: {}",
                        item.kind.alias()
                    )))
                },
                |twice| {
                    failed(format!(
                        "array '{name}' in $jsonSchema keyword 'dependencies' contains duplicate element: {twice}"
                    ))
                },
            )?),
            _ => {
                return Err(Error::type_mismatch(format!(
                    "property '{name}' in $jsonSchema keyword 'dependencies' must be either an object or an array"
                )));
            }
        };
        Ok((Path::new(name), dependency))
    }

    fn parse_arrays(self, rules: &mut Vec<Rule>) -> Result<()> {
        rules.extend(self.count("minItems")?.map(Rule::ItemsMin));
        rules.extend(self.count("maxItems")?.map(Rule::ItemsMax));
        match self.keyword("uniqueItems").map(Element::value) {
            None | Some(Value::Boolean(false)) => {}
            Some(Value::Boolean(true)) => rules.push(Rule::ItemsUnique),
            Some(_) => return mismatch("uniqueItems", "must be a boolean"),
        }
        let listed = match self.keyword("items").map(Element::value) {
            None => None,
            Some(Value::Document(schema)) => {
                rules.push(Rule::Items { listed: Vec::new(), others: Others::Match(self.within(schema)?) });
                None
            }
            Some(Value::Array(schemas)) => Some(self.parse_listed_items(schemas)?),
            Some(other) => {
                let complaint = format!("must be an array or an object, not {}", other.kind().alias());
                return mismatch("items", &complaint);
            }
        };
        let others = match self.keyword("additionalItems").map(Element::value) {
            None | Some(Value::Boolean(true)) => Others::Allowed,
            Some(Value::Boolean(false)) => Others::Forbidden,
            Some(Value::Document(schema)) => Others::Match(self.within(schema)?),
            Some(other) => {
                let found = other.kind().alias();
                return mismatch(
                    "additionalItems",
                    &format!("must be either an object or a boolean, but got a {found}"),
                );
            }
        };
        rules.extend(listed.map(|listed| Rule::Items { listed, others }));
        Ok(())
    }

    fn parse_listed_items(self, schemas: Doc<'_>) -> Result<Vec<Schema>> {
        let schema = |value: Value<'_>| match value {
            Value::Document(schema) => self.within(schema),
            other => {
                let complaint = "requires that each element of the array is an object, but found a";
                mismatch("items", &format!("{complaint} {}", other.kind().alias()))
            }
        };
        schemas.values().map(schema).collect()
    }

    fn parse_logic(self, rules: &mut Vec<Rule>) -> Result<()> {
        let branches = |name| self.keyword(name).map(|element| self.parse_branches(element)).transpose();
        rules.extend(branches("allOf")?.map(Rule::AllOf));
        rules.extend(branches("anyOf")?.map(Rule::AnyOf));
        rules.extend(branches("oneOf")?.map(Rule::OneOf));
        if let Some(element) = self.keyword("not") {
            let Value::Document(schema) = element.value() else {
                let found = element.kind.alias();
                return mismatch("not", &format!("must be an object, but found an element of type {found}"));
            };
            rules.push(Rule::Not(self.beside(schema)?));
        }
        if let Some(element) = self.keyword("enum") {
            rules.push(Rule::Enumeration(parse_enumeration(element)?));
        }
        Ok(())
    }

    fn parse_branches(self, element: Element<'_>) -> Result<Vec<Schema>> {
        let name = element.key();
        let Value::Array(branches) = element.value() else { return mismatch(name, "must be an array") };
        if branches.is_empty() {
            return Err(Error::bad_value(format!("$jsonSchema keyword '{name}' must be a non-empty array")));
        }
        let branch = |value: Value<'_>| match value {
            Value::Document(schema) => self.beside(schema),
            other => {
                let found = other.kind().alias();
                mismatch(name, &format!("must be an array of objects, but found an element of type {found}"))
            }
        };
        branches.values().map(branch).collect()
    }

    /// Parses the operand of a keyword that counts.
    fn count(self, name: &str) -> Result<Option<usize>> {
        let count = |element| non_negative(element).map(|count| count as usize).map_err(Error::failed_to_parse);
        self.keyword(name).map(count).transpose()
    }
}

fn failed<T>(message: String) -> Result<T> {
    Err(Error::failed_to_parse(message))
}

fn mismatch<T>(keyword: &str, complaint: &str) -> Result<T> {
    Err(Error::type_mismatch(format!("$jsonSchema keyword '{keyword}' {complaint}")))
}

fn document_of<'a>(element: Element<'a>, complaint: &str) -> Result<Doc<'a>> {
    match element.value() {
        Value::Document(document) => Ok(document),
        _ => mismatch(element.key(), complaint),
    }
}

fn parse_type_keyword(element: Element<'_>) -> Result<TypeSet> {
    let name = element.key();
    let mut seen: Vec<&str> = Vec::new();
    match element.value() {
        Value::String(alias) => seen.push(alias),
        Value::Array(aliases) => {
            for alias in aliases.values() {
                let Value::String(alias) = alias else { return mismatch(name, "array elements must be strings") };
                if seen.contains(&alias) {
                    return failed(format!("$jsonSchema keyword '{name}' has duplicate value: {alias}"));
                }
                seen.push(alias);
            }
        }
        _ => return mismatch(name, "must be either a string or an array of strings"),
    }
    if seen.is_empty() {
        return failed(format!("$jsonSchema keyword '{name}' must name at least one type"));
    }
    for alias in seen {
        match (name, alias) {
            ("type", "integer") => return failed("$jsonSchema type 'integer' is not currently supported.".into()),
            ("type", "string" | "object" | "array" | "number" | "boolean" | "null") => {}
            ("type", alias) => return Err(Error::bad_value(format!("Unknown type name alias: {alias}"))),
            (_, "missing") => {
                return Err(Error::bad_value(
                    "'missing' is not a legal type name. To query for non-existence of a field, use {$exists:false}.",
                ));
            }
            _ => {}
        }
    }
    match element.value() {
        Value::String("boolean") if name == "type" => parse_type(name, Value::String("bool")),
        Value::Array(aliases) if name == "type" => {
            let aliases = aliases
                .values()
                .map(|alias| if alias == Value::String("boolean") { Value::String("bool") } else { alias });
            let mut list = document::DocBuf::new();
            aliases.enumerate().for_each(|(index, alias)| list.append(&index.to_string(), alias));
            parse_type(name, Value::Array(list.as_doc()))
        }
        types => parse_type(name, types),
    }
}

/// Parses the types that the original of an encrypted value may have, if any are named.
fn parse_encrypt(element: Element<'_>) -> Result<Option<TypeSet>> {
    let options = document_of(element, "must be an object ")?;
    check_encryption_fields("encrypt", options)?;
    options.get("bsonType").map(|types| parse_type("bsonType", types)).transpose()
}

fn check_encryption_fields(within: &str, options: Doc<'_>) -> Result<()> {
    for (name, value) in options.iter() {
        match (name, value) {
            ("keyId", Value::String(_) | Value::Array(_)) => {}
            ("bsonType", Value::String(_) | Value::Array(_)) if within == "encrypt" => {}
            (
                "algorithm",
                Value::String("AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic" | "AEAD_AES_256_CBC_HMAC_SHA_512-Random"),
            ) => {}
            ("algorithm", Value::String(other)) => {
                return Err(Error::bad_value(format!(
                    "Enumeration value '{other}' for field '{within}.algorithm' is not a valid value."
                )));
            }
            ("keyId" | "bsonType" | "algorithm", other) => {
                let found = other.kind().alias();
                return Err(Error::type_mismatch(format!("BSON field '{within}.{name}' is the wrong type '{found}'")));
            }
            _ => {
                return Err(Error::new(Code(40415), format!("BSON field '{within}.{name}' is an unknown field.")));
            }
        }
    }
    Ok(())
}

fn parse_enumeration(element: Element<'_>) -> Result<Vec<ValueBuf>> {
    let Value::Array(values) = element.value() else {
        let found = element.kind.alias();
        return mismatch("enum", &format!("must be an array, but found an element of type {found}"));
    };
    if values.is_empty() {
        return failed("$jsonSchema keyword 'enum' cannot be an empty array".into());
    }
    if !unordered::all_differ(values) {
        return failed("$jsonSchema keyword 'enum' array cannot contain duplicate values.".into());
    }
    let mut values: Vec<ValueBuf> = values.values().map(ValueBuf::from).collect();
    values.sort_by(|a, b| unordered::order(a.as_value(), b.as_value()));
    Ok(values)
}

fn parse_name_pattern(pattern: &str) -> Result<Regex> {
    Regex::new(pattern, "").map_err(|error| {
        let reason = error.message().rsplit_once(": ").map_or(error.message(), |(_, reason)| reason);
        Error::bad_value(format!("Invalid regular expression: {reason}"))
    })
}

/// Parses the names in a list of strings without duplicates; the two closures build the errors.
fn distinct_names<'a>(
    names: Doc<'a>,
    no_string: impl Fn(Element<'a>) -> Result<()>,
    twice: impl Fn(&str) -> Result<()>,
) -> Result<Vec<Path>> {
    let (mut paths, mut known) = (Vec::new(), HashSet::new());
    for element in names.elements() {
        let Some(name) = element.value().as_name() else {
            no_string(element)?;
            continue;
        };
        paths.push(Path::new(&name));
        if !known.insert(name.clone()) {
            twice(&name)?;
        }
    }
    Ok(paths)
}
