//! What a prepared statement is executed with: COM_STMT_EXECUTE taken apart.

/// Number, flags, how often; behind the command's byte.
const HEAD_BYTES: usize = 1 + 4 + 1 + 4;

/// A time of day: as a date it would be today's.
const TIME_TYPES: [u8; 2] = [0x0B, 0x13];

/// An execution's parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Execution<'p> {
    head: &'p [u8],
    /// Which values are NULL.
    nulls: &'p [u8],
    /// Two bytes for each value; where they are not said, those of the execution before count.
    pub types: Option<&'p [u8]>,
    values: &'p [u8],
}

impl<'p> Execution<'p> {
    /// Takes a command's payload apart; `None` where it has other parts.
    pub fn read(payload: &'p [u8], params: usize) -> Option<Execution<'p>> {
        let (head, rest) = payload.split_at_checked(HEAD_BYTES)?;
        if params == 0 {
            return Some(Execution { head, nulls: &[], types: Some(&[]), values: &[] });
        }
        let (nulls, rest) = rest.split_at_checked(params.div_ceil(8))?;
        let (says_types, rest) = rest.split_first()?;
        match says_types {
            0 => Some(Execution { head, nulls, types: None, values: rest }),
            _ => {
                let (types, values) = rest.split_at_checked(2 * params)?;
                Some(Execution { head, nulls, types: Some(types), values })
            }
        }
    }

    /// Whether all rows are asked for at once.
    pub fn is_plain(&self) -> bool {
        self.head.get(5) == Some(&0)
    }

    /// What tells it from others, given the types that count.
    pub fn write_key(&self, types: &[u8], key: &mut Vec<u8>) {
        for part in [types, self.nulls, self.values] {
            key.extend_from_slice(&(part.len() as u32).to_le_bytes());
            key.extend_from_slice(part);
        }
    }

    /// The same command, as a packet, that says the types.
    pub fn packet(&self, types: &[u8]) -> Vec<u8> {
        let says_types: &[u8] = if types.is_empty() { &[] } else { &[1] };
        let payload = [self.head, self.nulls, says_types, types, self.values].concat();
        let length = (payload.len() as u32).to_le_bytes();
        [&length[..3], &[0], &payload].concat()
    }
}

/// Whether an answer made with values of these types depends on nothing but them and rows.
pub fn are_timeless(types: &[u8]) -> bool {
    types.chunks(2).all(|of_value| of_value.first().is_none_or(|kind| !TIME_TYPES.contains(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = &[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0];

    #[test]
    fn types_are_said_once() {
        let first = [HEAD, &[0b10, 1, 3, 0, 0xFE, 0, 42, 0, 0, 0]].concat();
        let execution = Execution::read(&first, 2).unwrap();
        assert_eq!((execution.types, execution.is_plain()), (Some(&[3, 0, 0xFE, 0][..]), true));
        let second = [HEAD, &[0b10, 0, 42, 0, 0, 0]].concat();
        let again = Execution::read(&second, 2).unwrap();
        assert_eq!(again.types, None);
        let key = |execution: &Execution<'_>| {
            let mut key = Vec::new();
            execution.write_key(&[3, 0, 0xFE, 0], &mut key);
            key
        };
        assert_eq!(key(&execution), key(&again));
        assert_eq!(again.packet(&[3, 0, 0xFE, 0])[4..], first);
        for length in 0..first.len() - 4 {
            assert_eq!(Execution::read(&first[..length], 2).filter(|_| length < 16), None, "{length}");
        }
    }

    #[test]
    fn without_values_there_are_no_types() {
        let execution = Execution::read(HEAD, 0).unwrap();
        assert_eq!(execution.packet(&[])[4..], *HEAD);
        assert!(Execution::read(&HEAD[..5], 0).is_none());
        let with_cursor: Vec<u8> = HEAD.iter().enumerate().map(|(at, byte)| if at == 5 { 1 } else { *byte }).collect();
        assert!(!Execution::read(&with_cursor, 0).unwrap().is_plain());
    }

    #[test]
    fn a_time_of_day_depends_on_the_day() {
        assert!(are_timeless(&[3, 0, 0xFE, 0]) && !are_timeless(&[3, 0, 0x0B, 0]));
    }
}
