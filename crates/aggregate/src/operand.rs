//! Operands of accumulators, and the document they are computed from.
//!
//! Most operands are top-level fields. A stage with several of them numbers them when it is parsed
//! ([`Numbering`]), and finds them all in one walk through each document ([`Row::gather`]).

use document::{Element, Kind, Name, Value};
use error::Result;
use query::expression::Evaluated;
use query::{Context, Expression, Item};
use values::number::Number;

/// Maximal number of fields found in one walk; further ones are looked up separately.
const GATHERED_MAX: usize = 8;

/// An expression, with a fast path for the most frequent kind.
#[derive(Debug)]
pub(super) enum Operand {
    /// A top-level field, and its number if the stage numbers its fields.
    Field(Box<str>, Option<usize>),
    Expression(Expression),
}

impl Operand {
    pub fn parse(value: Value<'_>, context: &Context) -> Result<Operand> {
        let expression = Expression::parse(value, context)?;
        Ok(match expression.as_field() {
            Some(path) if !path.contains('.') => Operand::Field(path.into(), None),
            _ => Operand::Expression(expression),
        })
    }

    pub fn is_supported_by_second_engine(&self) -> bool {
        match self {
            Operand::Field(..) => true,
            Operand::Expression(expression) => expression.is_supported_by_second_engine(),
        }
    }

    pub fn reads_document(&self) -> bool {
        match self {
            Operand::Field(..) => true,
            Operand::Expression(expression) => expression.reads_document(),
        }
    }

    pub fn use_second_engine(&mut self) {
        if let Operand::Expression(expression) = self {
            expression.use_second_engine();
        }
    }

    #[inline]
    pub fn evaluate<'s>(&'s self, item: impl Into<Item<'s>>) -> Result<Evaluated<'s>> {
        let item = item.into();
        match self {
            Operand::Field(name, _) => Ok(item.document.get(name).map_or(Evaluated::Missing, Evaluated::Value)),
            Operand::Expression(expression) => expression.evaluate(item),
        }
    }

    /// Like [`Operand::evaluate`], for a document whose fields may have been gathered.
    #[inline]
    pub fn evaluate_in<'s>(&'s self, row: &Row<'s>) -> Result<Evaluated<'s>> {
        match self {
            Operand::Field(name, number) => {
                Ok(row.field(name, *number).map_or(Evaluated::Missing, |element| Evaluated::Value(element.value())))
            }
            Operand::Expression(expression) => expression.evaluate(row.item),
        }
    }

    /// Returns the bytes of the value's text, if a gathered field is a string.
    #[inline]
    pub fn text_in<'s>(&'s self, row: &Row<'s>) -> Option<&'s [u8]> {
        let Operand::Field(name, number) = self else { return None };
        row.field(name, *number).and_then(Element::text_bytes)
    }

    /// Returns the value, if it is that of a field and an int32.
    #[inline]
    pub fn int32_in(&self, row: &Row<'_>) -> Option<i32> {
        let Operand::Field(name, number) = self else { return None };
        let element = row.field(name, *number)?;
        (element.kind == Kind::Int32).then(|| element.raw_value().first_chunk().copied().map(i32::from_le_bytes))?
    }

    /// Returns the value, if it is a number.
    #[inline]
    pub fn number_in(&self, row: &Row<'_>) -> Result<Option<Number>> {
        match self {
            Operand::Field(name, number) => Ok(row.field(name, *number).and_then(Number::from_element)),
            Operand::Expression(expression) => Ok(expression.evaluate(row.item)?.value().and_then(Number::from_value)),
        }
    }
}

/// The top-level fields that a stage's operands read, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    names: Vec<Name>,
}

impl Numbering {
    /// Assigns a number to the operand's field, if the operand is a field.
    pub fn assign_number(&mut self, operand: &mut Operand) {
        let Operand::Field(name, number) = operand else { return };
        *number = self.names.iter().position(|known| known.as_str() == &**name);
        if number.is_none() && self.names.len() < GATHERED_MAX {
            *number = Some(self.names.len());
            self.names.push(Name::new(name));
        }
    }
}

/// Numbered fields of a document.
pub(super) type GatheredFields<'d> = [Option<Element<'d>>; GATHERED_MAX];

/// A document on its way into accumulators.
pub(super) struct Row<'d> {
    item: Item<'d>,
    /// Its numbered fields, if they have been gathered.
    fields: Option<&'d GatheredFields<'d>>,
}

impl<'d> Row<'d> {
    /// Returns a document whose fields are looked up one by one.
    pub fn new(item: Item<'d>) -> Row<'d> {
        Row { item, fields: None }
    }

    /// Finds the numbered fields and stores them in `fields`, which must be empty.
    #[inline]
    pub fn gather(item: Item<'d>, numbering: &Numbering, fields: &'d mut GatheredFields<'d>) -> Row<'d> {
        item.document.gather(&numbering.names, fields);
        Row { item, fields: Some(fields) }
    }

    pub fn item(&self) -> Item<'d> {
        self.item
    }

    #[inline]
    fn field(&self, name: &str, number: Option<usize>) -> Option<Element<'d>> {
        match (self.fields, number) {
            (Some(fields), Some(number)) => fields.get(number).copied().flatten(),
            _ => self.item.document.element(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn gathered_fields_agree_with_single_lookups() {
        let context = Context::at(0);
        let mut operands: Vec<Operand> = ["$b", "$missing", "$a", "$b", "$long name", "$long names", "$a.b"]
            .iter()
            .map(|path| Operand::parse(Value::String(path), &context).unwrap())
            .collect();
        let mut numbering = Numbering::default();
        operands.iter_mut().for_each(|operand| numbering.assign_number(operand));
        assert_eq!(numbering.names.len(), 5);
        // Of two fields with one name the first counts.
        let document = doc! { "long nam": 0, "long name": 1, "a": &doc! { "b": 2 }, "b": 3_i64, "b": 4, "c": 5 };
        let mut fields = GatheredFields::default();
        let row = Row::gather(document.as_doc().into(), &numbering, &mut fields);
        for operand in &operands {
            let (gathered, plain) = (operand.evaluate_in(&row).unwrap(), operand.evaluate(document.as_doc()).unwrap());
            assert_eq!(gathered.value(), plain.value(), "{operand:?}");
            let number = operand.number_in(&row).unwrap().map(Number::to_value);
            let int32 = operand.int32_in(&row).map(Value::Int32);
            assert!(int32.is_none() || int32 == number, "{operand:?}");
            assert_eq!(number, plain.value().filter(|value| value.kind().is_number()), "{operand:?}");
        }
    }
}
