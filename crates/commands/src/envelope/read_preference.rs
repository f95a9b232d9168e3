//! `$readPreference`: the servers that a client wants to read from.

use crate::arguments;
use crate::arguments::{unknown_field, wrong_kind};
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use store::read_preference::TagSet;
use store::{ReadMode, ReadPreference};
use values::text;

/// Fails with 14 for a part of another type, and 2, 4, 72, 160 or 40415 for an invalid value.
pub fn check_read_preference(element: Element<'_>) -> Result<()> {
    let Some(preference) = element.value().as_document() else {
        return Err(Error::type_mismatch(format!(
            "$readPreference has incorrect type: expected object but got {}",
            element.kind.alias()
        )));
    };
    let is_primary = check_mode(preference)?;
    if let Some(hedge) = preference.element("hedge") {
        check_hedge(hedge, is_primary)?;
    }
    if let Some(tags) = preference.element("tags") {
        check_tags(tags, is_primary)?;
    }
    preference.element("maxStalenessSeconds").map_or(Ok(()), |staleness| check_staleness(staleness, is_primary))
}

/// Returns the preference that was checked.
pub fn preference_of(element: Element<'_>) -> Option<ReadPreference> {
    let preference = element.value().as_document()?;
    let name = preference.get("mode")?.as_str()?;
    let mode = ReadMode::ALL.into_iter().find(|mode| mode.name() == name)?;
    let staleness = preference.get("maxStalenessSeconds").and_then(exact);
    let tag = |tag: Element<'_>| Some((tag.key().to_owned(), tag.value().as_str()?.to_owned()));
    let tags = |set: Value<'_>| set.as_document()?.elements().map(tag).collect::<Option<TagSet>>();
    let sets = preference.get("tags").and_then(Value::as_array);
    let mut wanted = ReadPreference::new(mode);
    wanted.tags = sets.into_iter().flat_map(|sets| sets.values()).filter_map(tags).collect();
    wanted.staleness_max_seconds =
        staleness.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    Some(wanted)
}

fn check_mode(preference: Doc<'_>) -> Result<bool> {
    match preference.get("mode") {
        Some(Value::String("primary")) => Ok(true),
        Some(Value::String("primaryPreferred" | "secondary" | "secondaryPreferred" | "nearest")) => Ok(false),
        Some(Value::String(mode)) => Err(Error::bad_value(format!(
            "Could not parse $readPreference mode '{mode}'. Only the modes 'primary', 'primaryPreferred', 'secondary', \
             'secondaryPreferred', and 'nearest' are supported. :: caused by :: Enumeration value '{mode}' for field \
             'mode' is not a valid value."
        ))),
        Some(other) => Err(wrong_kind("$readPreference", "mode", other.kind(), "string")),
        None => Err(Error::new(Code::NO_SUCH_KEY, "Missing expected field \"mode\"")),
    }
}

fn check_hedge(hedge: Element<'_>, is_primary: bool) -> Result<()> {
    let Some(options) = hedge.value().as_document() else {
        let found = text::element("hedge", hedge.value());
        return Err(Error::type_mismatch(format!("hedge field must be of type object if provided; found {found}")));
    };
    let mut enabled = true;
    for option in options.elements() {
        match option.key() {
            "enabled" => enabled = arguments::boolean("hedge", option)?,
            "delay" => {}
            other => return Err(unknown_field("hedge", other)),
        }
    }
    match enabled && is_primary {
        true => {
            let message = "cannot enable hedging for $readPreference mode \"primaryOnly\"";
            Err(Error::new(Code::INVALID_OPTIONS, message))
        }
        false => Ok(()),
    }
}

fn check_tags(tags: Element<'_>, is_primary: bool) -> Result<()> {
    let Some(list) = tags.value().as_array() else {
        let found = tags.kind.alias();
        return Err(Error::type_mismatch(format!("\"tags\" had the wrong type. Expected array, found {found}")));
    };
    let is_empty = |tag: Value<'_>| matches!(tag, Value::Document(tag) if tag.is_empty());
    match is_primary && !list.values().all(is_empty) {
        true => Err(Error::bad_value("Only empty tags are allowed with primary read preference")),
        false => Ok(()),
    }
}

fn check_staleness(staleness: Element<'_>, is_primary: bool) -> Result<()> {
    const FIELD: &str = "maxStalenessSeconds";
    if !staleness.kind.is_number() {
        let found = staleness.kind.alias();
        let message = format!("Expected field \"{FIELD}\" to have numeric type, but found {found}");
        return Err(Error::type_mismatch(message));
    }
    match exact(staleness.value()) {
        None => {
            let found = text::element(FIELD, staleness.value());
            Err(Error::bad_value(format!(
                "Expected field \"{FIELD}\" to have a value exactly representable as a 64-bit integer, but found {found}"
            )))
        }
        Some(..0) => Err(Error::bad_value(format!("{FIELD} must be a non-negative integer"))),
        Some(0) => Ok(()),
        Some(1..90) => Err(Error::new(Code(160), format!("{FIELD} value can not be less than 90"))),
        Some(_) if is_primary => Err(Error::bad_value(format!("{FIELD} can not be set for the primary mode"))),
        Some(_) => Ok(()),
    }
}

fn exact(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Double(number) if number.fract() != 0.0 || !number.is_finite() => None,
        value => value.to_i64(),
    }
}
