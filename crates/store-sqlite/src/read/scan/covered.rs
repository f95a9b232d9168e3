//! Covered reads: documents built from keys, if all requested fields are in the index.
//!
//! A key of null does not say whether the field exists, and a number's key does not say its type,
//! unless all of an index's numbers have one type. Such documents are fetched.

use super::key_walk::Entry;
use super::{Slice, SliceEnd};
use crate::catalog::multikey::ExactKeyTypes;
use crate::failure::Attempt;
use crate::plan::{CoveredFields, IndexScan};
use document::key::DecodedKey;
use document::{Doc, DocWriter};
use index_keys::IndexField;
use std::sync::atomic::Ordering;

/// If this many keys at the start of a slice cannot be decoded, the scan gives up decoding.
const TRIES_MAX: u32 = 32;

/// A slice's decoder of keys, with its success so far.
#[derive(Default)]
pub(super) struct KeyDecoder {
    succeeded: bool,
    tries: u32,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
}

/// The outcome of decoding an entry's key.
pub(super) enum CoveredOutcome {
    /// The document has been given. The value says how the slice ends, if it does.
    Given(Option<SliceEnd>),
    /// The document must be fetched.
    Undecodable,
    /// The document must be fetched, and so must all that follow.
    GaveUp,
}

impl Slice<'_, '_> {
    /// Gives a document built from an entry's key.
    pub(super) fn give_key(
        &mut self,
        scan: &IndexScan,
        covered: &CoveredFields,
        entry: &Entry<'_>,
    ) -> Attempt<CoveredOutcome> {
        // Arrays, and values with the keys of other types, are recorded before their entries become
        // visible.
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
            CoveredOutcome::Given(_) => self.decoder.succeeded = true,
            _ => self.decoder.tries += 1,
        }
        if self.decoder.succeeded || self.decoder.tries < TRIES_MAX {
            return Ok(outcome);
        }
        covered.gave_up.store(true, Ordering::Relaxed);
        Ok(CoveredOutcome::GaveUp)
    }

    /// Gives the fields that a covered read returns: those of the index, in its order, as MongoDB
    /// does.
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
    /// Returns the requested fields, if all of them can be decoded.
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
            let (decoded, rest) = document::key::read(key, !field.ascending, &mut self.scratch)?;
            match decoded {
                DecodedKey::Value(value) => writer.append(&field.path, value),
                DecodedKey::Text(text) if exact.texts => writer.append(&field.path, text),
                DecodedKey::Integer(number) if exact.numbers => writer.append(&field.path, i32::try_from(number).ok()?),
                DecodedKey::Text(_) | DecodedKey::Integer(_) | DecodedKey::Ambiguous => return None,
            }
            key = rest;
        }
        drop(writer);
        Doc::from_bytes(&self.buffer)
    }
}
