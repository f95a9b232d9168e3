//! Rows: binary ones (of prepared statements) and text ones (of COM_QUERY).
//!
//! Source: <https://mariadb.com/kb/en/resultset-row/>

use crate::{ColumnType, Malformed, Reader};

/// Reads the values of a binary row from left to right.
#[derive(Clone, Debug)]
pub struct BinaryRow<'a> {
    nulls: &'a [u8],
    values: Reader<'a>,
    types: &'a [ColumnType],
    index: usize,
}

impl<'a> BinaryRow<'a> {
    /// `types`: the types of the result set's columns.
    #[inline]
    pub fn new(payload: &'a [u8], types: &'a [ColumnType]) -> Result<Self, Malformed> {
        let mut values = Reader::new(payload, "binary row");
        values.u8()?;
        // The bitmap's first two bits are reserved.
        let nulls = values.bytes((types.len() + 2).div_ceil(8))?;
        Ok(BinaryRow { nulls, values, types, index: 0 })
    }

    /// Returns the next value's bytes: numbers in little endian, texts and blobs as they are;
    /// `None` for NULL.
    #[inline]
    pub fn next_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let column_type = *self.types.get(self.index).ok_or(Malformed("binary row"))?;
        let bit = self.index + 2;
        self.index += 1;
        if self.nulls.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0) {
            return Ok(None);
        }
        match column_type.fixed_bytes() {
            Some(length) => self.values.bytes(length),
            None => self.values.length_encoded_bytes(),
        }
        .map(Some)
    }

    /// Returns the next value, an integer of any width, as 64 bits without sign extension; 0 for
    /// NULL.
    #[inline]
    pub fn next_u64(&mut self) -> Result<u64, Malformed> {
        let mut wide = [0; 8];
        if let Some(bytes) = self.next_bytes()? {
            wide.get_mut(..bytes.len()).ok_or(Malformed("binary row"))?.copy_from_slice(bytes);
        }
        Ok(u64::from_le_bytes(wide))
    }
}

/// Reads the values of a text row from left to right; `None` for NULL.
#[derive(Clone, Debug)]
pub struct TextRow<'a>(Reader<'a>);

impl<'a> TextRow<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        TextRow(Reader::new(payload, "text row"))
    }

    pub fn next_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        self.0.length_encoded_nullable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_truncations;

    fn read(payload: &[u8], types: &[ColumnType]) -> Result<Vec<Option<Vec<u8>>>, Malformed> {
        let mut row = BinaryRow::new(payload, types)?;
        types.iter().map(|_| Ok(row.next_bytes()?.map(<[u8]>::to_vec))).collect()
    }

    #[test]
    fn values_and_nulls_are_read() {
        let types = [ColumnType::LONG_LONG, ColumnType::BLOB, ColumnType::LONG, ColumnType::TINY];
        let sample = [0, 0b1_0000, 1, 2, 0, 0, 0, 0, 0, 0, 2, b'{', b'}', 9];
        let values = read(&sample, &types).unwrap();
        assert_eq!(values, [Some(vec![1, 2, 0, 0, 0, 0, 0, 0]), Some(b"{}".to_vec()), None, Some(vec![9])]);
        check_truncations(&sample, |bytes| assert!(read(bytes, &types).is_err()));
        assert_eq!(BinaryRow::new(&sample, &types).unwrap().next_u64(), Ok(0x201));
        assert!(BinaryRow::new(&[0, 0], &[]).unwrap().next_bytes().is_err());
    }

    #[test]
    fn text_rows_are_read() {
        let mut row = TextRow::new(b"\x01a\xfb\x00");
        assert_eq!(row.next_bytes(), Ok(Some(&b"a"[..])));
        assert_eq!(row.next_bytes(), Ok(None));
        assert_eq!(row.next_bytes(), Ok(Some(&b""[..])));
        assert!(row.next_bytes().is_err());
    }
}
