//! What a collection's options demand of what is written to it: a validator, a cap. Read from the options once per catalog
//! entry; most collections have none of it.

use crate::validator::Validator;
use document::{Doc, Value};
use error::{Code, Error, Result};
use std::sync::Arc;

/// The rules of one collection.
#[derive(Debug)]
pub struct Rules {
    pub validator: Option<Validator>,
    pub cap: Option<Cap>,
    /// Its documents are kept by `_id`, which is their natural order.
    pub clustered: bool,
}

/// What a capped collection holds at the most; the oldest documents go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    pub bytes: u64,
    pub documents: Option<u64>,
}

impl Rules {
    /// The rules in a collection's options; `None` where there are none. Errors are the validator's, which `create` has
    /// found already.
    pub fn of(options: Doc<'_>) -> Result<Option<Arc<Rules>>> {
        let validator = Validator::of(options)?;
        let cap = Cap::of(options);
        let clustered = options.get(CLUSTERED_INDEX).is_some();
        let any = validator.is_some() || cap.is_some() || clustered;
        Ok(any.then(|| Arc::new(Rules { validator, cap, clustered })))
    }
}

/// The option of a collection whose documents are kept by `_id`.
pub const CLUSTERED_INDEX: &str = "clusteredIndex";

/// Error 2: a tailable cursor was asked for on a collection that has an end.
pub fn not_capped() -> Error {
    Error::bad_value("error processing query: tailable cursor requested on non capped collection")
}

/// Error 136: the document that a scan of a capped collection had reached is there no more.
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

    /// Whether that much is too much.
    pub fn is_exceeded(&self, documents: u64, bytes: u64) -> bool {
        bytes > self.bytes || self.documents.is_some_and(|limit| documents > limit)
    }
}
