//! Rows of small result sets, read from their packets.

use mariadb_wire::END;

/// Returns the payloads of a reply's packets.
fn packets(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let ([a, b, c, _], behind) = rest.split_first_chunk()?;
        let (payload, behind) = behind.split_at_checked(u32::from_le_bytes([*a, *b, *c, 0]) as usize)?;
        rest = behind;
        Some(payload)
    })
}

/// Decodes the first row of a text result set: the packet after the column definitions. Returns
/// `None` for anything else.
pub fn first_row(bytes: &[u8], deprecates_eof: bool) -> Option<Vec<Option<String>>> {
    let mut payloads = packets(bytes);
    let columns = usize::from(*payloads.next()?.first()?);
    let mut row = payloads.nth(columns + usize::from(!deprecates_eof))?;
    let mut fields = Vec::new();
    for _ in 0..columns {
        let (&first, rest) = row.split_first()?;
        let (length, rest) = match first {
            0xFB => {
                fields.push(None);
                row = rest;
                continue;
            }
            0xFC => (usize::from(u16::from_le_bytes(*rest.first_chunk()?)), rest.get(2..)?),
            0xFD => {
                let [a, b, c] = *rest.first_chunk()?;
                (u32::from_le_bytes([a, b, c, 0]) as usize, rest.get(3..)?)
            }
            0xFE | 0xFF => return None,
            length => (usize::from(length), rest),
        };
        let (field, rest) = rest.split_at_checked(length)?;
        fields.push(Some(String::from_utf8_lossy(field).into_owned()));
        row = rest;
    }
    Some(fields)
}

/// Returns the payloads of a result set's rows, concatenated, without the column definitions.
pub fn rows(bytes: &[u8], deprecates_eof: bool) -> Option<Vec<u8>> {
    let mut payloads = packets(bytes);
    let columns = usize::from(*payloads.next()?.first()?);
    let row_payloads = payloads.skip(columns + usize::from(!deprecates_eof));
    // The final packet is left out: it has warnings and flags.
    Some(row_payloads.take_while(|payload| payload.first() != Some(&END)).flatten().copied().collect())
}
