//! The names of a command's fields, each of which may occur once.

use crate::arguments;
use ahash::RandomState;
use document::{Doc, Element};
use error::{Error, Result};
use std::collections::HashSet;

/// The number of fields up to which a name is compared with those before it, one by one.
const COMPARED_MAX: usize = 32;

/// The names of the fields that were read so far. Two fields of one name would let a check read
/// another value than the command.
#[derive(Default)]
pub struct Names<'a> {
    count: usize,
    /// A bit for each name: mostly another one than those before it.
    bits: u64,
    /// All names of a command with many fields, so that it does not take quadratic time.
    many: Option<HashSet<&'a [u8], RandomState>>,
}

impl<'a> Names<'a> {
    /// Adds the next field of `body`. Fails with 40413 if a field before it has its name.
    #[inline]
    pub fn add(&mut self, body: Doc<'a>, field: Element<'a>) -> Result<()> {
        let name = field.key_bytes();
        self.count += 1;
        let is_new = match self.count <= COMPARED_MAX {
            true => self.is_new_bit(name) || before(body, field).all(|other| other.key_bytes() != name),
            false => {
                let many =
                    self.many.get_or_insert_with(|| before(body, field).map(|other| other.key_bytes()).collect());
                many.insert(name)
            }
        };
        if is_new { Ok(()) } else { Err(repeated(field)) }
    }

    fn is_new_bit(&mut self, name: &[u8]) -> bool {
        let ends =
            name.first().zip(name.last()).map_or(0, |(first, last)| usize::from(*first) + 7 * usize::from(*last));
        let bit = 1 << ((ends + name.len()) % 64);
        let is_new = self.bits & bit == 0;
        self.bits |= bit;
        is_new
    }
}

/// Returns the fields before this one.
fn before<'a>(body: Doc<'a>, field: Element<'a>) -> impl Iterator<Item = Element<'a>> {
    let position = field.key_bytes().as_ptr();
    body.elements().take_while(move |other| other.key_bytes().as_ptr() != position)
}

#[cold]
fn repeated(field: Element<'_>) -> Error {
    arguments::repeated_field("APIParametersFromClient", field.key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::DocBuf;

    fn check(names: impl IntoIterator<Item = String>) -> Result<()> {
        let body = DocBuf::build(|writer| names.into_iter().for_each(|name| writer.append(&name, 1)));
        let mut names = Names::default();
        body.as_doc().elements().try_for_each(|field| names.add(body.as_doc(), field))
    }

    #[test]
    fn repeated_names_are_found_among_few_and_many() {
        for count in [0, 1, 2, COMPARED_MAX, COMPARED_MAX + 1, 1000] {
            let names = || (0..count).map(|number| number.to_string());
            assert!(check(names()).is_ok(), "{count}");
            for repeated in names() {
                let error = check(names().chain([repeated.clone()])).unwrap_err();
                assert_eq!(
                    error.message(),
                    format!("BSON field 'APIParametersFromClient.{repeated}' is a duplicate field")
                );
            }
        }
        assert!(check(["ab".to_owned(), "ba".to_owned(), String::new()]).is_ok());
        assert!(check([String::new(), String::new()]).is_err());
    }
}
