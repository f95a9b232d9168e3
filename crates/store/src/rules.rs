//! The rules that a collection's options impose on writes: a validator, a cap. Read from the
//! options once per catalog entry; most collections have none.

use crate::validator::Validator;
use document::{Doc, Value};
use error::{Code, Error, Result};
use std::sync::Arc;

/// The rules of one collection.
#[derive(Debug)]
pub struct Rules {
    pub validator: Option<Validator>,
    pub cap: Option<Cap>,
    /// Its documents are stored by `_id`, which is their natural order.
    pub clustered: bool,
}

/// The limits of a capped collection; past them, the oldest documents are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    pub bytes: u64,
    pub documents: Option<u64>,
}

impl Rules {
    /// Reads the rules from a collection's options; `None` if there are none. Fails with the
    /// validator's errors, which `create` has already reported.
    pub fn of(options: Doc<'_>) -> Result<Option<Arc<Rules>>> {
        let validator = Validator::of(options)?;
        let cap = Cap::of(options);
        let clustered = options.get(CLUSTERED_INDEX).is_some();
        let any = validator.is_some() || cap.is_some() || clustered;
        Ok(any.then(|| Arc::new(Rules { validator, cap, clustered })))
    }
}

/// The option of a collection whose documents are stored by `_id`.
pub const CLUSTERED_INDEX: &str = "clusteredIndex";

/// Returns error 2: a tailable cursor needs a capped collection.
pub fn not_capped() -> Error {
    Error::bad_value("error processing query: tailable cursor requested on non capped collection")
}

/// Returns error 136: the document at the position of a scan of a capped collection has been
/// deleted.
pub fn position_lost(tailable: bool, record: i64) -> Error {
    let reason = match tailable {
        true => "failure to restore tailable cursor position",
        false => "position in capped collection being deleted",
    };
    let message = format!("CollectionScan died due to {reason}. Last seen record id: RecordId({record})");
    Error::new(Code::CAPPED_POSITION_LOST, message)
}

impl Cap {
    fn of(options: Doc<'_>) -> Option<Cap> {
        options.get("capped").filter(|capped| capped.is_truthy())?;
        let number = |key: &str| match options.get(key)? {
            Value::Int32(number) => u64::try_from(number).ok(),
            Value::Int64(number) => u64::try_from(number).ok(),
            _ => None,
        };
        let documents = number("max").filter(|documents| (1..i32::MAX as u64).contains(documents));
        Some(Cap { bytes: number("size").unwrap_or(u64::MAX), documents })
    }

    /// Returns whether this many documents or bytes exceed the cap.
    pub fn is_exceeded(&self, documents: u64, bytes: u64) -> bool {
        bytes > self.bytes || self.documents.is_some_and(|limit| documents > limit)
    }
}
