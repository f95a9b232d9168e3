//! `setFeatureCompatibilityVersion`: 6.0 is in effect, and older versions are refused.

use crate::arguments;
use crate::arguments::{is_absent, missing_field, unknown_field};
use crate::call::Call;
use document::DocWriter;
use error::{Code, Error, Result};

const WITHIN: &str = "setFeatureCompatibilityVersion";

pub fn set(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let mut on_disk = false;
    for field in call.fields() {
        match field.key() {
            "downgradeOnDiskChanges" | "fromConfigServer" if is_absent(field) => {}
            "downgradeOnDiskChanges" => {
                arguments::boolean_or_number(WITHIN, field)?;
                on_disk = true;
            }
            "fromConfigServer" => drop(arguments::boolean_or_number(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    if is_absent(call.first()) {
        return Err(missing_field(WITHIN, WITHIN));
    }
    match arguments::string(WITHIN, call.first())? {
        "6.0" if on_disk => {
            let message = "Cannot set featureCompatibilityVersion to 6.0 with 'downgradeOnDiskChanges' set to true. This is only \
                           allowed when downgrading to 5.3";
            Err(Error::new(Code::ILLEGAL_OPERATION, message))
        }
        "6.0" => Ok(()),
        version @ ("5.0" | "5.3") => {
            let message = format!("featureCompatibilityVersion {version} is not supported by this server");
            Err(Error::new(Code::NOT_IMPLEMENTED, message))
        }
        _ => {
            let message = "Invalid feature compatibility version value, expected '5.0' or '5.3' or '6.0. See \
                           https://docs.mongodb.com/master/release-notes/5.0-compatibility/#feature-compatibility.";
            Err(Error::new(Code(4926900), message))
        }
    }
}
