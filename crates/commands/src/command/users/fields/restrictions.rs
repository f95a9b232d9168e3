//! `authenticationRestrictions` in commands.

use super::arrays::{texts, wrong_element};
use crate::arguments::{self, unknown_field};
use document::{ArrayWriter, Doc, Element, Value, ValueBuf};
use error::{Code, Error, Result};
use std::net::IpAddr;

/// The conditions on addresses that a command sets.
pub struct AddressRestrictions<'a>(Vec<AddressRestriction<'a>>);

/// A condition: the arrays of addresses, if they are given.
struct AddressRestriction<'a> {
    client_source: Option<Doc<'a>>,
    server_address: Option<Doc<'a>>,
}

impl<'a> AddressRestrictions<'a> {
    /// Parses the types of a field. The addresses may be invalid.
    pub fn parse(within: &str, field: Element<'a>) -> Result<AddressRestrictions<'a>> {
        let within_each = format!("{within}.{}", field.key());
        let mut restrictions = Vec::new();
        for element in arguments::array(within, field)?.elements() {
            let Some(document) = element.value().as_document() else {
                return Err(wrong_element(within, field, element, "object"));
            };
            let mut restriction = AddressRestriction { client_source: None, server_address: None };
            for part in document.elements() {
                let place = match part.key() {
                    "clientSource" => &mut restriction.client_source,
                    "serverAddress" => &mut restriction.server_address,
                    other => return Err(unknown_field(&within_each, other)),
                };
                texts(&within_each, part)?;
                *place = part.value().as_array();
            }
            restrictions.push(restriction);
        }
        Ok(AddressRestrictions(restrictions))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the addresses. Fails with 2 or 162.
    pub fn check(&self) -> Result<()> {
        self.0.iter().try_for_each(AddressRestriction::check)
    }

    /// Returns the array to store.
    pub fn to_array(&self) -> ValueBuf {
        let mut bytes = Vec::new();
        {
            let mut array = ArrayWriter::begin(&mut bytes);
            for restriction in &self.0 {
                let mut document = array.document();
                let lists =
                    [("clientSource", restriction.client_source), ("serverAddress", restriction.server_address)];
                for (name, list) in lists {
                    if let Some(list) = list {
                        document.append(name, Value::Array(list));
                    }
                }
            }
        }
        ValueBuf::from(Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)))
    }
}

impl AddressRestriction<'_> {
    fn check(&self) -> Result<()> {
        let lists = [self.client_source, self.server_address];
        if lists.iter().all(Option::is_none) {
            let message = "At least one of 'clientSource' or 'serverAddress' must be set";
            return Err(Error::new(Code::COLLECTION_IS_EMPTY, message));
        }
        let mut addresses = lists.into_iter().flatten().flat_map(Doc::values);
        addresses.try_for_each(|address| check_range(address.as_str().unwrap_or_default()))
    }
}

/// Checks the addresses of a stored user. Fails with 2 or 162.
pub fn check_stored(user: Doc<'_>) -> Result<()> {
    let stored = user.get("authenticationRestrictions").and_then(|value| value.as_array());
    for restriction in stored.unwrap_or(Doc::EMPTY).values().filter_map(|value| value.as_document()) {
        let list = |name: &str| restriction.get(name).and_then(|value| value.as_array());
        AddressRestriction { client_source: list("clientSource"), server_address: list("serverAddress") }.check()?;
    }
    Ok(())
}

/// Checks an address, or a range in CIDR notation.
fn check_range(text: &str) -> Result<()> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| Error::bad_value("Invalid IP address in CIDR string"))?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    match bits.map(str::parse::<i64>) {
        None => Ok(()),
        Some(Err(_)) => Err(Error::bad_value("Non-numeric length in CIDR string")),
        Some(Ok(bits)) if !(0..=bits_max).contains(&bits) => Err(Error::bad_value("Invalid length in CIDR string")),
        Some(Ok(_)) => Ok(()),
    }
}

/// Returns stored restrictions with the length of each range.
pub fn normalized(restrictions: Doc<'_>) -> ValueBuf {
    let mut bytes = Vec::new();
    {
        let mut array = ArrayWriter::begin(&mut bytes);
        for restriction in restrictions.values().filter_map(|value| value.as_document()) {
            let mut document = array.document();
            for (name, ranges) in restriction.iter() {
                let mut list = document.array(name);
                let ranges = ranges.as_array().unwrap_or(Doc::EMPTY);
                ranges.values().filter_map(|range| range.as_str()).for_each(|range| list.push(&*with_length(range)));
            }
        }
    }
    ValueBuf::from(Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)))
}

/// Returns a range with its length; text that is no address unchanged.
fn with_length(range: &str) -> String {
    match range.parse::<IpAddr>() {
        Ok(address) => format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 }),
        Err(_) => range.to_owned(),
    }
}
