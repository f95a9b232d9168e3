//! Templates of documents with expressions: parsed from a scenario's tables, encoded as BSON with
//! random values.

use super::generator::{self, Draw, Generator, Scope, integer, milliseconds};
use document::{ArrayWriter, Doc, DocBuf, DocWriter, Value as Bson, ValueBuf};
use std::str::FromStr;
use strict_toml::{Source, TomlError, Value};
use toml::de::{DeTable, DeValue};

/// A value with expressions in it.
pub enum Template {
    Drawn(Generator),
    Document(Vec<(Generator, Template)>),
    Array(Vec<Template>),
    /// An array of many values from one template.
    Repeated(Generator, Box<Template>),
}

/// The key of a table that stands for an array: the number of elements, whose template is under
/// [`OF`].
const ARRAY: &str = "{array}";
const OF: &str = "of";

/// Parses a value. `key` is its key, for messages.
pub fn read(source: Source<'_>, key: &str, value: &Value<'_>, scope: &mut Scope<'_>) -> Result<Template, TomlError> {
    let at = value.span().start;
    let refuse = |message: String| source.refuse(at, format!("{key}: {message}"));
    let constant = |value: Bson<'_>| Template::Drawn(Generator::Constant(ValueBuf::from(value)));
    Ok(match value.get_ref() {
        DeValue::String(text) => Template::Drawn(generator::compile(text, scope).map_err(refuse)?),
        DeValue::Integer(_) => {
            let number = strict_toml::integer(value.get_ref());
            let number = number.ok_or_else(|| refuse("a number out of range".to_owned()))?;
            Template::Drawn(Generator::Constant(integer(number)))
        }
        DeValue::Float(number) => {
            let digits = number.as_str().replace('_', "");
            constant(Bson::Double(f64::from_str(&digits).map_err(|error| refuse(error.to_string()))?))
        }
        DeValue::Boolean(flag) => constant(Bson::Boolean(*flag)),
        DeValue::Datetime(date) => match milliseconds(*date) {
            Some(milliseconds) => constant(Bson::DateTime(milliseconds)),
            None => return Err(refuse("a time without a date".to_owned())),
        },
        DeValue::Array(values) => {
            let values = values.iter().map(|value| read(source, key, value, scope));
            Template::Array(values.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) if table.contains_key(ARRAY) => read_repeated(source, table, scope)?,
        DeValue::Table(table) => read_document(source, table, scope)?,
    })
}

/// Parses a table as a document, in the order of its keys.
pub fn read_document(source: Source<'_>, table: &DeTable<'_>, scope: &mut Scope<'_>) -> Result<Template, TomlError> {
    let mut fields = Vec::new();
    for (key, value) in table {
        let name = key.get_ref();
        let compiled = generator::compile(name, scope);
        let compiled = compiled.map_err(|message| source.refuse(key.span().start, format!("{name}: {message}")))?;
        fields.push((compiled, read(source, name, value, scope)?));
    }
    Ok(Template::Document(fields))
}

fn read_repeated(source: Source<'_>, table: &DeTable<'_>, scope: &mut Scope<'_>) -> Result<Template, TomlError> {
    let other = table.iter().find(|(key, _)| ![ARRAY, OF].contains(&key.get_ref().as_ref()));
    if let Some((key, _)) = other {
        let message = format!("beside {ARRAY:?} there is {OF:?} alone, not {:?}", key.get_ref());
        return Err(source.refuse(key.span().start, message));
    }
    let (Some(count), Some(of)) = (table.get(ARRAY), table.get(OF)) else {
        let at = table.iter().next().map_or(0, |(key, _)| key.span().start);
        return Err(source.refuse(at, format!("{ARRAY:?} says how many, and {OF:?} of what; the latter is missing")));
    };
    let Template::Drawn(count) = read(source, ARRAY, count, scope)? else {
        return Err(source.refuse(count.span().start, format!("{ARRAY}: a number is needed")));
    };
    let outside = std::mem::replace(&mut scope.in_array, true);
    let of = read(source, OF, of, scope)?;
    scope.in_array = outside;
    Ok(Template::Repeated(count, Box::new(of)))
}

/// More elements are an error; a document cannot hold them.
const ELEMENTS_MAX: u64 = 1_000_000;

impl Template {
    /// Generates a document; an empty one if the template is not a document.
    pub fn document(&self, draw: &mut Draw<'_>) -> Result<DocBuf, String> {
        let mut bytes = Vec::with_capacity(256);
        let fields = if let Template::Document(fields) = self { fields.as_slice() } else { &[] };
        write_fields(fields, DocWriter::begin(&mut bytes), draw)?;
        DocBuf::from_vec(bytes).ok_or_else(|| "a document that is too large".to_owned())
    }

    pub fn value(&self, draw: &mut Draw<'_>) -> Result<ValueBuf, String> {
        let mut bytes = Vec::new();
        write(self, "", &mut DocWriter::begin(&mut bytes), draw)?;
        let value = Doc::from_bytes(&bytes).and_then(|document| document.values().next());
        value.map(ValueBuf::from).ok_or_else(|| "a value that is too large".to_owned())
    }
}

fn write_fields(
    fields: &[(Generator, Template)],
    mut writer: DocWriter<'_>,
    draw: &mut Draw<'_>,
) -> Result<(), String> {
    for (key, value) in fields {
        match key.constant().map(ValueBuf::as_value) {
            Some(Bson::String(key)) => write(value, key, &mut writer, draw)?,
            _ => {
                let key = key.draw(draw)?;
                let Bson::String(key) = key.as_value() else { return Err(format!("the key {key:?} is no text")) };
                write(value, key, &mut writer, draw)?;
            }
        }
    }
    Ok(())
}

fn write(template: &Template, key: &str, writer: &mut DocWriter<'_>, draw: &mut Draw<'_>) -> Result<(), String> {
    match template {
        Template::Drawn(generator) => {
            match generator.constant() {
                Some(value) => writer.append(key, value),
                None => writer.append(key, &generator.draw(draw)?),
            }
            Ok(())
        }
        Template::Document(fields) => write_fields(fields, writer.document(key), draw),
        Template::Array(values) => push_each(values.iter(), writer.array(key), draw),
        Template::Repeated(count, of) => push_repeated(count, of, writer.array(key), draw),
    }
}

fn push_each<'t>(
    values: impl Iterator<Item = &'t Template>,
    mut writer: ArrayWriter<'_>,
    draw: &mut Draw<'_>,
) -> Result<(), String> {
    values.into_iter().try_for_each(|value| push(value, &mut writer, draw))
}

fn push_repeated(
    count: &Generator,
    of: &Template,
    mut writer: ArrayWriter<'_>,
    draw: &mut Draw<'_>,
) -> Result<(), String> {
    let count = count.count(draw)?;
    if count > ELEMENTS_MAX {
        return Err(format!("an array of {count} elements"));
    }
    let outside = draw.element;
    for element in 0..count {
        draw.element = element as i64;
        push(of, &mut writer, draw)?;
    }
    draw.element = outside;
    Ok(())
}

fn push(template: &Template, writer: &mut ArrayWriter<'_>, draw: &mut Draw<'_>) -> Result<(), String> {
    match template {
        Template::Drawn(generator) => writer.push(&generator.draw(draw)?),
        Template::Document(fields) => write_fields(fields, writer.document(), draw)?,
        Template::Array(values) => push_each(values.iter(), writer.array(), draw)?,
        Template::Repeated(count, of) => push_repeated(count, of, writer.array(), draw)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{array, doc};

    fn compiled(text: &str) -> Result<Template, TomlError> {
        let source = Source::new(text);
        let constants = [("three".to_owned(), integer(3))];
        let sequences = &mut Vec::new();
        let mut scope =
            Scope { constants: &constants, sequences, variables: Vec::new(), operations: &[], in_array: false };
        read_document(source, &source.parse()?, &mut scope)
    }

    fn document(text: &str) -> DocBuf {
        let template = compiled(text).expect(text);
        let mut source = generator::Source::new(1, &[], 0, 1);
        template.document(&mut Draw { index: 7, ..Draw::from(&mut source) }).expect(text)
    }

    #[test]
    fn tables_become_documents() {
        let text = "update = 'posts'\nupdates = [{ q = { _id = '{index}' }, u = { '$push' = { 'a.{index}' = 1.5 } } }]\n\
                    at = 1970-01-02\nordered = false\nlarge = 3000000000\n";
        let change = doc! { "q": &doc! { "_id": 7i32 }, "u": &doc! { "$push": &doc! { "a.7": 1.5 } } };
        let expected = doc! {
            "update": "posts",
            "updates": &array![&change],
            "at": Bson::DateTime(86_400_000),
            "ordered": false,
            "large": 3_000_000_000i64,
        };
        assert_eq!(document(text), expected);
    }

    #[test]
    fn arrays_of_many() {
        let text = "a = { '{array}' = '{three}', of = { '{array}' = 2, of = '{element}-{index}' } }";
        let inner = array!["0-7", "1-7"];
        assert_eq!(document(text), doc! { "a": &array![&inner, &inner, &inner] });
        assert_eq!(document("a = { '{array}' = 3, of = '{element}' }"), doc! { "a": &array![0i32, 1i32, 2i32] });
    }

    #[test]
    fn errors_name_line_and_key() {
        let check = |text: &str, line: usize, part: &str| {
            let refusal = compiled(text).map(drop).expect_err(text);
            assert!(refusal.line == line && refusal.message.contains(part), "{refusal}");
        };
        check("a = 1\nb = '{tree}'", 2, "b: unknown name \"tree\"; did you mean \"three\"?");
        check("a = [\n1,\n'{int(}']", 3, "a: ");
        check("a = { '{array}' = 3 }", 1, "missing");
        check("a = { '{array}' = 3,\n'off' = 1 }", 2, "\"off\"");
        check("a = { '{array}' = {} }", 1, "missing");
        check("\na = 07:00:00", 2, "a: a time without a date");
        check("'{' = 1", 1, "missing");
    }
}
