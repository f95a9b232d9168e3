//! `ping`.

use crate::arguments::unknown_field;
use crate::dispatch::Call;
use document::DocWriter;
use error::Result;

pub fn ping(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    match call.fields().next() {
        Some(field) => Err(unknown_field("ping", field.key())),
        None => Ok(()),
    }
}
