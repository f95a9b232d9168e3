//! COM_STMT_EXECUTE: the parameters with which a prepared statement is executed.

/// The command's byte, the statement's number, flags, the iteration count.
const HEAD_BYTES: usize = 1 + 4 + 1 + 4;

/// The type codes of TIME: converted to a date, it would get today's.
const TIME_TYPES: [u8; 2] = [0x0B, 0x13];

/// The parts of a COM_STMT_EXECUTE.
#[derive(Debug, PartialEq, Eq)]
pub struct ExecutePacket<'p> {
    head: &'p [u8],
    /// A bit for each parameter that is NULL.
    nulls: &'p [u8],
    /// Two bytes for each parameter; `None`: those of the execution before apply.
    pub types: Option<&'p [u8]>,
    values: &'p [u8],
}

impl<'p> ExecutePacket<'p> {
    /// Parses a command's payload. Returns `None` if it is malformed.
    pub fn parse(payload: &'p [u8], params: usize) -> Option<ExecutePacket<'p>> {
        let (head, rest) = payload.split_at_checked(HEAD_BYTES)?;
        if params == 0 {
            return Some(ExecutePacket { head, nulls: &[], types: Some(&[]), values: &[] });
        }
        let (nulls, rest) = rest.split_at_checked(params.div_ceil(8))?;
        let (has_types, rest) = rest.split_first()?;
        match has_types {
            0 => Some(ExecutePacket { head, nulls, types: None, values: rest }),
            _ => {
                let (types, values) = rest.split_at_checked(2 * params)?;
                Some(ExecutePacket { head, nulls, types: Some(types), values })
            }
        }
    }

    /// Returns whether the server sends all rows at once, without a cursor.
    pub fn is_without_cursor(&self) -> bool {
        self.head.get(5) == Some(&0)
    }

    /// Appends types and parameters to a cache key. `types`: those that apply.
    pub fn write_key(&self, types: &[u8], key: &mut Vec<u8>) {
        for part in [types, self.nulls, self.values] {
            key.extend_from_slice(&(part.len() as u32).to_le_bytes());
            key.extend_from_slice(part);
        }
    }

    /// Encodes the same command as a packet that includes the types.
    pub fn packet(&self, types: &[u8]) -> Vec<u8> {
        let has_types: &[u8] = if types.is_empty() { &[] } else { &[1] };
        let payload = [self.head, self.nulls, has_types, types, self.values].concat();
        let length = (payload.len() as u32).to_le_bytes();
        [&length[..3], &[0], &payload].concat()
    }
}

/// Returns whether no parameter of these types depends on the date of the execution.
pub fn are_date_independent(types: &[u8]) -> bool {
    types.chunks(2).all(|of_value| of_value.first().is_none_or(|kind| !TIME_TYPES.contains(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = &[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0];

    #[test]
    fn types_are_sent_with_the_first_execution() {
        let first = [HEAD, &[0b10, 1, 3, 0, 0xFE, 0, 42, 0, 0, 0]].concat();
        let execution = ExecutePacket::parse(&first, 2).unwrap();
        assert_eq!((execution.types, execution.is_without_cursor()), (Some(&[3, 0, 0xFE, 0][..]), true));
        let second = [HEAD, &[0b10, 0, 42, 0, 0, 0]].concat();
        let again = ExecutePacket::parse(&second, 2).unwrap();
        assert_eq!(again.types, None);
        let key = |execution: &ExecutePacket<'_>| {
            let mut key = Vec::new();
            execution.write_key(&[3, 0, 0xFE, 0], &mut key);
            key
        };
        assert_eq!(key(&execution), key(&again));
        assert_eq!(again.packet(&[3, 0, 0xFE, 0])[4..], first);
        for length in 0..first.len() - 4 {
            assert_eq!(ExecutePacket::parse(&first[..length], 2).filter(|_| length < 16), None, "{length}");
        }
    }

    #[test]
    fn a_statement_without_parameters_has_no_types() {
        let execution = ExecutePacket::parse(HEAD, 0).unwrap();
        assert_eq!(execution.packet(&[])[4..], *HEAD);
        assert!(ExecutePacket::parse(&HEAD[..5], 0).is_none());
        let with_cursor: Vec<u8> = HEAD.iter().enumerate().map(|(at, byte)| if at == 5 { 1 } else { *byte }).collect();
        assert!(!ExecutePacket::parse(&with_cursor, 0).unwrap().is_without_cursor());
    }

    #[test]
    fn a_time_of_day_depends_on_the_day() {
        assert!(are_date_independent(&[3, 0, 0xFE, 0]) && !are_date_independent(&[3, 0, 0x0B, 0]));
    }
}
