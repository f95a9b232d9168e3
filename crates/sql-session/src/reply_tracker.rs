//! Follows the server's reply to a command through its packets, to find its end and the status that
//! it reports.
//!
//! Bytes are parsed as they pass; only the first bytes of a packet are held.

use mariadb_wire::{END, ERR, OK};

/// Begins the packet by which the server requests a file of LOAD DATA LOCAL.
const FILE_REQUEST: u8 = 0xFB;
/// The code of an error packet that reports how far a statement has come.
const PROGRESS: [u8; 2] = [0xFF; 2];

pub const IN_TRANSACTION: u16 = 0x0001;
pub const AUTOCOMMIT: u16 = 0x0002;
const MORE_RESULTS: u16 = 0x0008;
const CURSOR_EXISTS: u16 = 0x0040;
pub const LAST_ROW_SENT: u16 = 0x0080;
pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
const STATE_CHANGED: u16 = 0x4000;

/// A packet of this length continues in the next one.
pub const PACKET_MAX: usize = 0xFF_FFFF;

/// How much of a packet is parsed.
const HEAD_BYTES: usize = 32;

/// The kind of reply that a command gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// One packet.
    Single,
    /// OK, an error, or result sets.
    Results,
    /// The reply to COM_STMT_PREPARE.
    Prepared,
    /// The reply to COM_STMT_FETCH: rows.
    Rows,
    /// The reply to COM_FIELD_LIST: column definitions.
    Fields,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Single,
    Head,
    PreparedHead,
    /// Definitions of parameters, then of columns, each group with an EOF packet of its own.
    PreparedDefinitions {
        left: usize,
        columns: usize,
    },
    PreparedEnd {
        columns: usize,
    },
    Definitions {
        left: u64,
    },
    DefinitionsEnd,
    Rows,
    Fields,
    Over,
}

/// The part of a reply to which its next packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The first packet of a result.
    Head,
    /// Definitions of columns.
    Definitions,
    Rows,
    Other,
}

/// The state of a reply as far as it has arrived.
#[derive(Debug)]
pub struct ReplyTracker {
    state: State,
    deprecates_eof: bool,
    header: [u8; 4],
    header_bytes: usize,
    /// Bytes of the packet that have not arrived.
    left: usize,
    continues: bool,
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    length: usize,
    /// The server has requested a file of the client, and goes on when it has it.
    pub requests_file: bool,
    /// The sequence number of the packet after the last one.
    pub next_number: u8,
    /// The client got something before the reply: a report of progress, or the request for a file.
    pub has_interim: bool,
    /// The session's status flags; `None` after an error, which has none.
    pub status: Option<u16>,
    pub failed: bool,
    /// The number of the error.
    pub error: Option<u16>,
    pub warned: bool,
    pub result_sets: usize,
    /// Rows of all result sets.
    pub rows: u64,
    /// The rows that the statement has changed, as the last OK packet says.
    pub affected_rows: u64,
    /// The id of the row that the last of the statements has inserted; 0 if there is none.
    pub last_insert_id: u64,
    /// The statement's id, in the reply to COM_STMT_PREPARE.
    pub statement: Option<u32>,
    /// The statement's number of parameters.
    pub params: usize,
}

impl ReplyTracker {
    pub fn new(shape: ReplyKind, deprecates_eof: bool) -> ReplyTracker {
        let state = match shape {
            ReplyKind::Single => State::Single,
            ReplyKind::Results => State::Head,
            ReplyKind::Prepared => State::PreparedHead,
            ReplyKind::Rows => State::Rows,
            ReplyKind::Fields => State::Fields,
        };
        ReplyTracker {
            state,
            deprecates_eof,
            header: [0; 4],
            header_bytes: 0,
            left: 0,
            continues: false,
            head: [0; HEAD_BYTES],
            head_bytes: 0,
            length: 0,
            requests_file: false,
            next_number: 0,
            has_interim: false,
            status: None,
            failed: false,
            error: None,
            warned: false,
            result_sets: 0,
            rows: 0,
            affected_rows: 0,
            last_insert_id: 0,
            statement: None,
            params: 0,
        }
    }

    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Returns the part of the reply to which the next packet belongs.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Head => Phase::Head,
            State::Definitions { .. } => Phase::Definitions,
            State::Rows => Phase::Rows,
            _ => Phase::Other,
        }
    }

    /// Returns whether a cursor has further rows, which the client may fetch.
    pub fn has_more_to_fetch(&self) -> bool {
        self.status.is_some_and(|status| status & CURSOR_EXISTS != 0 && status & LAST_ROW_SENT == 0)
    }

    /// Returns whether the reply is one plain result set, of a session in autocommit mode and
    /// outside of a transaction.
    pub fn is_cacheable(&self) -> bool {
        let flags = IN_TRANSACTION | AUTOCOMMIT | STATE_CHANGED | CURSOR_EXISTS;
        !self.failed
            && !self.warned
            && !self.has_interim
            && self.result_sets == 1
            && self.status.is_some_and(|status| status & flags == AUTOCOMMIT)
    }

    /// Parses the next bytes. Returns how many of them belong to this reply; those up to a request
    /// for a file, if there is one.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        self.requests_file = false;
        while self.state != State::Over {
            if self.header_bytes < 4 {
                let Some((&byte, behind)) = rest.split_first() else { break };
                rest = behind;
                self.header[self.header_bytes] = byte;
                self.header_bytes += 1;
                if self.header_bytes == 4 {
                    let [a, b, c, number] = self.header;
                    self.next_number = number.wrapping_add(1);
                    let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                    self.left = length;
                    self.continues = length == PACKET_MAX;
                    self.length += length;
                }
                if self.header_bytes < 4 || self.left > 0 {
                    continue;
                }
            }
            let taken = self.left.min(rest.len());
            let (packet, behind) = rest.split_at(taken);
            let room = (HEAD_BYTES - self.head_bytes).min(taken);
            self.head[self.head_bytes..self.head_bytes + room].copy_from_slice(&packet[..room]);
            self.head_bytes += room;
            self.left -= taken;
            rest = behind;
            if self.left > 0 {
                break;
            }
            self.header_bytes = 0;
            if !self.continues {
                let (head, length) = (self.head, self.length);
                self.state = self.next(&head[..self.head_bytes], length);
                (self.head_bytes, self.length) = (0, 0);
            }
            if self.requests_file {
                break;
            }
        }
        bytes.len() - rest.len()
    }

    fn next(&mut self, head: &[u8], length: usize) -> State {
        let first = head.first().copied();
        if first == Some(ERR) && head.get(1..3) == Some(&PROGRESS) {
            self.has_interim = true;
            return self.state;
        }
        if first == Some(ERR) && !matches!(self.state, State::Definitions { .. } | State::PreparedDefinitions { .. }) {
            (self.failed, self.status) = (true, None);
            self.error = head.get(1..3).and_then(|code| code.try_into().ok()).map(u16::from_le_bytes);
            return State::Over;
        }
        match self.state {
            State::Single => {
                match first {
                    Some(OK) => self.note_ok(head),
                    Some(END) if length < 9 => self.note_eof(head),
                    _ => {}
                }
                State::Over
            }
            State::Head => match first {
                Some(OK) => {
                    self.note_ok(head);
                    self.after_result()
                }
                Some(FILE_REQUEST) => {
                    (self.requests_file, self.has_interim) = (true, true);
                    State::Head
                }
                _ => {
                    self.result_sets += 1;
                    match lenenc(head) {
                        Some((columns, _)) => State::Definitions { left: columns },
                        None => self.fail(),
                    }
                }
            },
            State::Definitions { left } if left > 1 => State::Definitions { left: left - 1 },
            State::Definitions { .. } if self.deprecates_eof => State::Rows,
            State::Definitions { .. } => State::DefinitionsEnd,
            State::DefinitionsEnd => {
                self.note_eof(head);
                match self.status.is_some_and(|status| status & CURSOR_EXISTS != 0) {
                    true => State::Over,
                    false => State::Rows,
                }
            }
            State::Rows if first == Some(END) && length < PACKET_MAX && (self.deprecates_eof || length < 9) => {
                match self.deprecates_eof {
                    true => self.note_ok(head),
                    false => self.note_eof(head),
                }
                self.after_result()
            }
            State::Rows => {
                self.rows += 1;
                State::Rows
            }
            State::Fields if first == Some(END) => {
                match self.deprecates_eof && length >= 7 {
                    true => self.note_ok(head),
                    false => self.note_eof(head),
                }
                State::Over
            }
            State::Fields => State::Fields,
            State::PreparedHead => {
                let [_, a, b, c, d, e, f, g, h, ..] = *head else { return self.fail() };
                self.statement = Some(u32::from_le_bytes([a, b, c, d]));
                let (columns, params) = (u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
                self.params = params.into();
                prepared(params.into(), columns.into())
            }
            State::PreparedDefinitions { left, columns } if left > 1 => {
                State::PreparedDefinitions { left: left - 1, columns }
            }
            State::PreparedDefinitions { columns, .. } => match self.deprecates_eof {
                true => prepared(0, columns),
                false => State::PreparedEnd { columns },
            },
            State::PreparedEnd { columns } => {
                self.note_eof(head);
                prepared(0, columns)
            }
            State::Over => State::Over,
        }
    }

    fn after_result(&self) -> State {
        match self.status.is_some_and(|status| status & MORE_RESULTS != 0) {
            true => State::Head,
            false => State::Over,
        }
    }

    fn fail(&mut self) -> State {
        self.failed = true;
        State::Over
    }

    /// Parses an OK packet: affected rows, last insert id, status flags, warnings.
    fn note_ok(&mut self, head: &[u8]) {
        let affected = head.get(1..).and_then(lenenc);
        let inserted = affected.and_then(|(rows, rest)| Some((rows, lenenc(rest)?)));
        self.status = None;
        if let Some((rows, (id, [a, b, c, d, ..]))) = inserted {
            self.affected_rows = rows;
            if id != 0 {
                self.last_insert_id = id;
            }
            self.status = Some(u16::from_le_bytes([*a, *b]));
            self.warned |= (*c, *d) != (0, 0);
        }
    }

    /// Parses an EOF packet: warnings, status flags.
    fn note_eof(&mut self, head: &[u8]) {
        self.status = None;
        if let [_, c, d, a, b, ..] = *head {
            self.status = Some(u16::from_le_bytes([a, b]));
            self.warned |= (c, d) != (0, 0);
        }
    }
}

fn prepared(params: usize, columns: usize) -> State {
    match (params, columns) {
        (0, 0) => State::Over,
        (0, left) => State::PreparedDefinitions { left, columns: 0 },
        (left, columns) => State::PreparedDefinitions { left, columns },
    }
}

/// Decodes a length-encoded integer. Returns it and the bytes after it.
fn lenenc(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let length = match first {
        0..=0xFA => return Some((first.into(), rest)),
        0xFC => 2,
        0xFD => 3,
        0xFE => 8,
        _ => return None,
    };
    let (number, rest) = rest.split_at_checked(length)?;
    Some((number.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_le_bytes();
        [&length[..3], &[number], payload].concat()
    }

    fn result_set(flags: u8) -> Vec<u8> {
        [
            packet(1, &[1]),
            packet(2, b"\x03def"),
            packet(3, &[END, 0, 0, flags, 0]),
            packet(4, b"\x011"),
            packet(5, b"\xfb"),
            packet(6, &[END, 0, 0, flags, 0]),
        ]
        .concat()
    }

    #[test]
    fn the_end_is_found_in_chunks_of_any_size() {
        for chunk in [1, 3, 1000] {
            let bytes = [result_set(2 | 8), packet(7, &[OK, 0, 0, 2, 0, 0, 0]), b"more".to_vec()].concat();
            let mut reply = ReplyTracker::new(ReplyKind::Results, false);
            let used: usize = bytes.chunks(chunk).map(|bytes| reply.feed(bytes)).sum();
            assert_eq!((used, reply.is_over(), reply.status), (bytes.len() - 4, true, Some(2)), "{chunk}");
        }
    }

    #[test]
    fn a_reply_continues_after_a_file_and_reports_of_progress() {
        let report = packet(1, b"\xff\xff\xff\x01\x01\x02\0\0\0\x04copy");
        let request = packet(2, b"\xfbpeople.csv");
        let ok = packet(9, &[OK, 3, 0, 2, 0, 0, 0]);
        let bytes = [report, request].concat();
        let mut reply = ReplyTracker::new(ReplyKind::Results, false);
        assert_eq!(reply.feed(&[&bytes[..], b"rest"].concat()), bytes.len());
        assert!(reply.requests_file && !reply.is_over());
        assert_eq!(reply.feed(&ok), ok.len());
        assert!(!reply.requests_file && reply.is_over() && !reply.failed && !reply.is_cacheable());
        assert_eq!(reply.affected_rows, 3);
    }

    #[test]
    fn only_plain_result_sets_are_cacheable() {
        for (flags, may) in [(2, true), (3, false), (0, false)] {
            let mut reply = ReplyTracker::new(ReplyKind::Results, false);
            reply.feed(&result_set(flags));
            assert_eq!((reply.is_over(), reply.is_cacheable()), (true, may), "{flags}");
        }
        let mut failed = ReplyTracker::new(ReplyKind::Results, false);
        failed.feed(&packet(1, b"\xff\x15\x04#28000no"));
        assert!(failed.is_over() && failed.failed && !failed.is_cacheable());
        assert_eq!(failed.error, Some(1045));
    }

    #[test]
    fn prepared_statements_have_two_lists_of_definitions() {
        let mut reply = ReplyTracker::new(ReplyKind::Prepared, true);
        let bytes = [
            packet(1, &[OK, 7, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0]),
            packet(2, b"\x03def"),
            packet(3, b"\x03def"),
            packet(4, b"\x03def"),
            b"x".to_vec(),
        ]
        .concat();
        assert_eq!((reply.feed(&bytes), reply.statement, reply.is_over()), (bytes.len() - 1, Some(7), true));
    }

    #[test]
    fn a_packet_of_maximal_length_continues() {
        let mut long = vec![0xFF, 0xFF, 0xFF, 1, 5];
        long.resize(4 + PACKET_MAX, b'x');
        let bytes = [long, packet(2, b"y"), packet(3, &[END, 0, 0, 2, 0])].concat();
        let mut reply = ReplyTracker::new(ReplyKind::Rows, false);
        assert_eq!((reply.feed(&bytes), reply.is_over()), (bytes.len(), true));
    }
}
