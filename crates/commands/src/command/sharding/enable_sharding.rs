//! `enableSharding`: has no effect, since collections of each database may be sharded.

use crate::arguments;
use crate::call::{Call, Disposition};
use document::DocWriter;
use error::{Code, Error, Result};

const WITHIN: &str = "enableSharding";

/// Parses the fields; returns the database.
pub fn parse(call: &Call<'_>) -> Result<()> {
    database(call).map(drop)
}

fn database<'a>(call: &Call<'a>) -> Result<&'a str> {
    let name = arguments::string(WITHIN, call.first())?;
    for field in call.fields().filter(|field| !arguments::is_absent(*field)) {
        match field.key() {
            // Other collections are on the head, which is no shard.
            "primaryShard" => drop(arguments::string(WITHIN, field)?),
            unknown => return Err(arguments::unknown_field(WITHIN, unknown)),
        }
    }
    if name.is_empty() || name.contains(['/', '\\', '.', ' ', '"', '$', '\0']) {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("invalid db name specified: {name}")));
    }
    if matches!(name, "admin" | "config" | "local") {
        return Err(Error::new(Code::INVALID_OPTIONS, format!("can't shard {name} database")));
    }
    Ok(name)
}

pub async fn enable_sharding(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    database(call)?;
    Ok(Disposition::Reply)
}
