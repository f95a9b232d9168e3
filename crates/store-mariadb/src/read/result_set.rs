//! A cached result set: the rows that a scan took.

/// The rows that a scan delivered.
#[derive(Debug, Default)]
pub struct ResultSet {
    /// Per row: its row key, its position in an index's order if that differs, its document if it
    /// has one; each with its length.
    pub bytes: Vec<u8>,
    /// The scan has no further rows.
    pub all: bool,
}

/// The length that means "no document".
const NONE: u32 = u32::MAX;

/// A cached row.
pub struct Row<'s> {
    pub key: &'s [u8],
    pub place: &'s [u8],
    pub json: Option<&'s [u8]>,
}

impl ResultSet {
    pub fn push(&mut self, key: &[u8], place: &[u8], json: Option<&[u8]>) {
        let place = if place == key { &[] } else { place };
        for part in [Some(key), Some(place), json] {
            let length = part.map_or(NONE, |part| part.len() as u32);
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(part.unwrap_or_default());
        }
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let mut rest = self.bytes.as_slice();
        let mut part = move || {
            let (length, behind) = rest.split_first_chunk()?;
            let length = u32::from_le_bytes(*length);
            let (part, behind) = behind.split_at_checked(if length == NONE { 0 } else { length as usize })?;
            rest = behind;
            Some((length != NONE).then_some(part))
        };
        std::iter::from_fn(move || {
            let key = part()??;
            let place = part()??;
            let json = part()?;
            Some(Row { key, place: if place.is_empty() { key } else { place }, json })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_round_trip() {
        let mut set = ResultSet::default();
        set.push(b"1", b"1", Some(b"{}"));
        set.push(b"2", b"place", None);
        set.push(b"3", b"", Some(b""));
        let text = |row: Row<'_>| format!("{:?} {:?} {:?}", row.key, row.place, row.json);
        let rows: Vec<_> = set.rows().map(text).collect();
        let expected = ["[49] [49] Some([123, 125])", "[50] [112, 108, 97, 99, 101] None", "[51] [51] Some([])"];
        assert_eq!(rows, expected);
    }
}
