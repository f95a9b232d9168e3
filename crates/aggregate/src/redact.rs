//! `$redact`: keeps, drops or descends into documents, level by level.

use document::{ArrayWriter, DocWriter, Value};
use error::{Code, Error, Result};
use query::{Context, Expression, Item};
use values::text::display;

/// The variables whose values the expression chooses from.
const VARIABLES: [&str; 3] = ["DESCEND", "KEEP", "PRUNE"];
const DESCEND: &str = "descend";
const KEEP: &str = "keep";
const PRUNE: &str = "prune";

#[derive(Debug)]
pub(crate) struct Redact {
    expression: Expression,
}

impl Redact {
    pub fn parse(spec: Value<'_>, context: &Context) -> Result<Redact> {
        Ok(Redact { expression: Expression::parse_with(spec, context, &VARIABLES)? })
    }

    /// Writes the rest of the document; returns `false` if nothing is left.
    pub fn apply(&self, item: Item<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let document = item.document;
        let variables = [DESCEND, KEEP, PRUNE].map(|text| Some(Value::String(text)));
        let decision = self.expression.evaluate_with(item, &variables)?;
        match decision.value() {
            Some(Value::String(KEEP)) => {
                out.extend_from_slice(document.as_bytes());
                Ok(true)
            }
            Some(Value::String(PRUNE)) => Ok(false),
            Some(Value::String(DESCEND)) => {
                let mut writer = DocWriter::begin(out);
                let mut nested = Vec::new();
                for element in document.elements() {
                    steps::step();
                    match element.value() {
                        Value::Document(document) => {
                            nested.clear();
                            if self.apply(item.with(document), &mut nested)? {
                                writer.append_raw(element.kind, element.key_bytes(), &nested);
                            }
                        }
                        Value::Array(array) => self.apply_to_elements(item.with(array), writer.array(element.key()))?,
                        _ => writer.append_element(element),
                    }
                }
                Ok(true)
            }
            other => Err(Error::new(
                Code(17053),
                format!(
                    "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and \
                     $$PRUNE, but returned {}",
                    other.map_or_else(|| "MISSING".to_owned(), display)
                ),
            )),
        }
    }

    fn apply_to_elements(&self, item: Item<'_>, mut writer: ArrayWriter<'_>) -> Result<()> {
        let mut nested = Vec::new();
        for element in item.document.elements() {
            steps::step();
            match element.value() {
                Value::Document(document) => {
                    nested.clear();
                    if self.apply(item.with(document), &mut nested)? {
                        writer.push_raw(element.kind, &nested);
                    }
                }
                Value::Array(array) => self.apply_to_elements(item.with(array), writer.array())?,
                _ => writer.push_raw(element.kind, element.raw_value()),
            }
        }
        Ok(())
    }
}
