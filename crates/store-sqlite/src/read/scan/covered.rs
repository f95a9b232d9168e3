//! Keys in the place of documents, where all that is asked for are fields of the index.
//!
//! A key of null does not tell whether there is a field, nor that of a number its type, unless all of an index's are of one. Such documents are fetched
//! after all.

use super::key_walk::Entry;
use super::{Slice, SliceEnd};
use crate::catalog::multikey::ExactKeyTypes;
use crate::failure::Attempt;
use crate::plan::{CoveredFields, IndexScan};
use document::key::Told;
use document::{Doc, DocWriter};
use index_keys::IndexField;
use std::sync::atomic::Ordering;

/// So many keys in a row that do not tell their values, the first of a slice, are taken for all of them.
const TRIES_MAX: u32 = 32;

/// What a slice has made of keys.
#[derive(Default)]
pub(super) struct KeyDecoder {
    told: bool,
    tries: u32,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
}

/// What has become of an entry.
pub(super) enum CoveredOutcome {
    /// Its document has been given by its key; how the slice ends, if it does.
    Given(Option<SliceEnd>),
    /// It is to be fetched.
    Undecodable,
    /// It is to be fetched, as all that follow.
    GaveUp,
}

impl Slice<'_, '_> {
    /// Gives what an entry's key says of its document.
    pub(super) fn give_key(
        &mut self,
        scan: &IndexScan,
        covered: &CoveredFields,
        entry: &Entry<'_>,
    ) -> Attempt<CoveredOutcome> {
        // Arrays, and values with the keys of others, are noted before their entries can be seen.
        if scan.is_multikey() {
            return Ok(CoveredOutcome::Undecodable);
        }
        let mut decoder = std::mem::take(&mut self.decoder);
        let document = decoder.read(entry.key, scan.fields(self.collection), covered, scan.exact_key_types());
        let outcome = match document {
            Some(document) => self.give(entry.seq, entry.key, document).map(CoveredOutcome::Given),
            None => Ok(CoveredOutcome::Undecodable),
        };
        self.decoder = decoder;
        let outcome = outcome?;
        match outcome {
            CoveredOutcome::Given(_) => self.decoder.told = true,
            _ => self.decoder.tries += 1,
        }
        if self.decoder.told || self.decoder.tries < TRIES_MAX {
            return Ok(outcome);
        }
        covered.gave_up.store(true, Ordering::Relaxed);
        Ok(CoveredOutcome::GaveUp)
    }

    /// Gives of a document what the key would have said: its fields in the index's order, as MongoDB has them then.
    pub(super) fn give_requested(
        &mut self,
        scan: &IndexScan,
        covered: &CoveredFields,
        entry: &Entry<'_>,
        document: Doc<'_>,
    ) -> Attempt<Option<SliceEnd>> {
        let mut buffer = std::mem::take(&mut self.decoder.buffer);
        buffer.clear();
        let mut writer = DocWriter::begin(&mut buffer);
        for (field, _) in scan.fields(self.collection).iter().zip(&covered.requested).filter(|(_, asked)| **asked) {
            document.element(&field.path).into_iter().for_each(|element| writer.append_element(element));
        }
        drop(writer);
        let given = self.give(entry.seq, entry.key, Doc::from_bytes(&buffer).unwrap_or(document));
        self.decoder.buffer = buffer;
        given
    }
}

impl KeyDecoder {
    /// The fields asked for, as far as the key tells all of them.
    fn read(
        &mut self,
        mut key: &[u8],
        fields: &[IndexField],
        covered: &CoveredFields,
        exact: ExactKeyTypes,
    ) -> Option<Doc<'_>> {
        self.buffer.clear();
        let mut writer = DocWriter::begin(&mut self.buffer);
        for (field, asked) in fields.iter().zip(&covered.requested) {
            if !asked {
                (_, key) = document::key::split(key, !field.ascending)?;
                continue;
            }
            let (told, rest) = document::key::read(key, !field.ascending, &mut self.scratch)?;
            match told {
                Told::Value(value) => writer.append(&field.path, value),
                Told::Text(text) if exact.texts => writer.append(&field.path, text),
                Told::Whole(number) if exact.numbers => writer.append(&field.path, i32::try_from(number).ok()?),
                Told::Text(_) | Told::Whole(_) | Told::Nothing => return None,
            }
            key = rest;
        }
        drop(writer);
        Doc::from_bytes(&self.buffer)
    }
}
