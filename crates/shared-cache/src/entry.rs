//! A reply as stored in Redis: the log position, the collections, the reply. Numbers are
//! little-endian; texts follow their length.

use crate::view::Position;
use document::validate;
use store::Namespace;

#[derive(Debug, PartialEq)]
pub struct Entry<'e> {
    pub position: Position,
    pub namespaces: Vec<Namespace>,
    pub body: &'e [u8],
}

impl<'e> Entry<'e> {
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.body.len() + 128);
        bytes.extend_from_slice(&(self.position.len() as u32).to_le_bytes());
        for (domain, number) in &self.position {
            bytes.extend_from_slice(&domain.to_le_bytes());
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.namespaces.len() as u32).to_le_bytes());
        for part in self.namespaces.iter().flat_map(|namespace| [&namespace.database, &namespace.collection]) {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes.extend_from_slice(self.body);
        bytes
    }

    /// Decodes an entry. Returns `None` if it is malformed: the bytes come from outside.
    pub fn read(bytes: &'e [u8]) -> Option<Entry<'e>> {
        let mut rest = bytes;
        let mut position = Position::new();
        for _ in 0..number(&mut rest)? {
            let domain = number(&mut rest)?;
            position.insert(domain, u64::from_le_bytes(*take(&mut rest, 8)?.first_chunk()?));
        }
        let mut namespaces = Vec::new();
        for _ in 0..number(&mut rest)? {
            let database = text(&mut rest)?;
            namespaces.push(Namespace::new(database, text(&mut rest)?));
        }
        let whole = validate::check(rest).is_ok_and(|document| document.size() == rest.len());
        (whole && !namespaces.is_empty()).then_some(Entry { position, namespaces, body: rest })
    }
}

fn take<'e>(rest: &mut &'e [u8], length: usize) -> Option<&'e [u8]> {
    let (taken, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*take(rest, 4)?.first_chunk()?))
}

fn text<'e>(rest: &mut &'e [u8]) -> Option<&'e str> {
    let length = number(rest)?;
    std::str::from_utf8(take(rest, length as usize)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn only_encoded_entries_are_decoded() {
        let body = doc! { "ok": 1.0 };
        let entry = Entry {
            position: [(0, 7), (3, 1 << 40)].into_iter().collect(),
            namespaces: vec![Namespace::new("d", "c"), Namespace::new("d", "other")],
            body: body.as_bytes(),
        };
        let bytes = entry.write();
        assert_eq!(Entry::read(&bytes), Some(entry));
        for length in 0..bytes.len() {
            assert_eq!(Entry::read(&bytes[..length]), None, "{length}");
        }
        assert_eq!(Entry::read(&[bytes.as_slice(), &[0]].concat()), None);
    }
}
