//! The addresses from which a user may log in (`authenticationRestrictions`).

use crate::fields::{self, malformed};
use document::{ArrayWriter, Doc};
use error::Result;
use std::net::IpAddr;

/// Conditions on the addresses of a connection. One of them must hold, if there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions(pub Vec<Restriction>);

/// A condition: both addresses must be in their lists; a list that is missing admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    pub client_source: Option<Vec<AddressRange>>,
    pub server_address: Option<Vec<AddressRange>>,
}

/// An address, or a range of addresses in CIDR notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRange {
    text: Box<str>,
    address: IpAddr,
    prefix_bits: u32,
}

impl Restrictions {
    /// Reads the field `authenticationRestrictions` of a stored document. Fails with 12 if it is
    /// malformed.
    pub fn from_field(document: Doc<'_>) -> Result<Restrictions> {
        let list = fields::documents(document, "authenticationRestrictions")?;
        list.into_iter().map(Restriction::from_document).collect::<Result<_>>().map(Restrictions)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a connection may log in. An address is `None` for a Unix socket.
    pub fn admit(&self, client: Option<IpAddr>, server: Option<IpAddr>) -> bool {
        let is_met = |ranges: &Option<Vec<AddressRange>>, address: Option<IpAddr>| match (ranges, address) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(ranges), Some(address)) => ranges.iter().any(|range| range.contains(address)),
        };
        let admits = |one: &Restriction| is_met(&one.client_source, client) && is_met(&one.server_address, server);
        self.0.is_empty() || self.0.iter().any(admits)
    }

    /// Appends the conditions.
    pub fn write(&self, array: &mut ArrayWriter<'_>) {
        for restriction in &self.0 {
            let mut document = array.document();
            let lists = [("clientSource", &restriction.client_source), ("serverAddress", &restriction.server_address)];
            for (key, ranges) in lists {
                if let Some(ranges) = ranges {
                    let mut list = document.array(key);
                    ranges.iter().for_each(|range| list.push(range.text()));
                }
            }
        }
    }
}

impl Restriction {
    fn from_document(document: Doc<'_>) -> Result<Restriction> {
        let ranges = |key: &str| {
            let Some(value) = document.get(key) else { return Ok(None) };
            let values = value.as_array().ok_or_else(|| malformed(key, "an array"))?;
            let range = |value: document::Value<'_>| value.as_str().and_then(AddressRange::parse);
            let ranges: Option<Vec<_>> = values.values().map(range).collect();
            ranges.map(Some).ok_or_else(|| malformed(key, "an array of addresses"))
        };
        Ok(Restriction { client_source: ranges("clientSource")?, server_address: ranges("serverAddress")? })
    }
}

impl AddressRange {
    /// Parses an address, with the length of its prefix if it is a range.
    pub fn parse(text: &str) -> Option<AddressRange> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            None => bits_max,
            Some(bits) if bits.bytes().all(|digit| digit.is_ascii_digit()) => bits.parse().ok()?,
            Some(_) => return None,
        };
        (prefix_bits <= bits_max).then(|| AddressRange { text: text.into(), address, prefix_bits })
    }

    /// Returns the text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether an address is in the range. IPv4 addresses that are mapped into IPv6 are
    /// IPv4 addresses.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let bits = self.prefix_bits.saturating_sub(if self.address.is_ipv6() { 96 } else { 0 });
                let differing = u32::from(own) ^ u32::from(other);
                differing.leading_zeros() >= bits
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (u128::from(own) ^ u128::from(other)).leading_zeros() >= self.prefix_bits
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> AddressRange {
        AddressRange::parse(text).expect("a valid range")
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("a valid address")
    }

    #[test]
    fn ranges_contain_addresses() {
        assert!(range("127.0.0.1").contains(address("127.0.0.1")));
        assert!(!range("127.0.0.1").contains(address("127.0.0.2")));
        assert!(range("10.0.0.0/8").contains(address("10.255.1.2")));
        assert!(!range("10.0.0.0/8").contains(address("11.0.0.0")));
        assert!(range("0.0.0.0/0").contains(address("8.8.8.8")));
        assert!(range("fe80::/10").contains(address("febf::1")));
        assert!(!range("fe80::/10").contains(address("127.0.0.1")));
        assert!(range("127.0.0.0/8").contains(address("::ffff:127.1.2.3")));
    }

    #[test]
    fn malformed_ranges_are_refused() {
        for text in ["", "localhost", "10.0.0.0/33", "::/129", "1.2.3", "1.2.3.4/", "1.2.3.4/+8", "1.2.3.4/8/8"] {
            assert_eq!(AddressRange::parse(text), None, "{text}");
        }
    }

    #[test]
    fn one_condition_must_hold() {
        let restrictions = Restrictions(vec![
            Restriction { client_source: Some(vec![range("10.0.0.0/8")]), server_address: Some(vec![range("::1")]) },
            Restriction { client_source: None, server_address: Some(vec![range("127.0.0.1")]) },
        ]);
        let admits = |client: &str, server: &str| restrictions.admit(Some(address(client)), Some(address(server)));
        assert!(admits("10.1.1.1", "::1") && admits("1.1.1.1", "127.0.0.1"));
        assert!(!admits("10.1.1.1", "::2") && !admits("1.1.1.1", "::1"));
        assert!(!restrictions.admit(None, None) && Restrictions::default().admit(None, None));
    }
}
