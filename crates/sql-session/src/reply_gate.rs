//! The reply to a command of a client with filters: as the server sends it, and as it is sent to
//! the client.

use crate::login::error_packet;
use crate::reply_tracker::{PACKET_MAX, Phase, ReplyKind, ReplyTracker};
use mariadb_wire::ERR;
use sql_filter::{Column, Refusal, ResultEditor, Row};
use std::mem;

/// Longer rows are not edited: the reply ends with an error.
const ROW_BYTES_MAX: usize = 64 << 20;

/// Observes the reply to a command, and edits its rows.
pub struct ReplyGate {
    /// Follows the reply of the server, or the error of a filter.
    pub reply: ReplyTracker,
    /// The number of the error with which a filter has ended the reply.
    pub refusal: Option<u16>,
    editing: Option<Box<Editing>>,
}

/// The state of a reply that is edited.
struct Editing {
    editors: Vec<Box<dyn ResultEditor>>,
    is_extended: bool,
    is_binary: bool,
    /// Bytes of packets that have not arrived whole.
    pending: Vec<u8>,
    columns: Vec<Column>,
    /// The number of the next packet that the client gets, and that of the next one of the server.
    numbers: Option<(u8, u8)>,
    /// Rows that wait for the end of their result set.
    held: Vec<Vec<u8>>,
    /// The rest of the result set's rows are left out.
    is_emptied: bool,
    /// The client has got an error: the rest of the reply is left out.
    has_ended: bool,
    out: Vec<u8>,
}

impl ReplyGate {
    pub fn new(kind: ReplyKind, deprecates_eof: bool) -> ReplyGate {
        ReplyGate { reply: ReplyTracker::new(kind, deprecates_eof), refusal: None, editing: None }
    }

    /// Edits the rows of the reply. `is_extended`: column definitions have extended metadata.
    /// `is_binary`: rows are those of a prepared statement.
    pub fn edit(&mut self, editors: Vec<Box<dyn ResultEditor>>, is_extended: bool, is_binary: bool) {
        if editors.is_empty() {
            return;
        }
        let (pending, columns, numbers, held, out) = Default::default();
        let (is_emptied, has_ended) = (false, false);
        self.editing = Some(Box::new(Editing {
            editors,
            is_extended,
            is_binary,
            pending,
            columns,
            numbers,
            held,
            is_emptied,
            has_ended,
            out,
        }));
    }

    /// Returns the editors, for the next rows of the same cursor.
    pub fn take_editors(&mut self) -> Vec<Box<dyn ResultEditor>> {
        self.editing.take().map(|editing| editing.editors).unwrap_or_default()
    }

    /// Returns whether the client has got an error before the end of the server's reply.
    pub fn has_ended(&self) -> bool {
        self.editing.as_ref().is_some_and(|editing| editing.has_ended)
    }

    /// Returns whether the rows follow by COM_STMT_FETCH.
    pub fn has_cursor(&self) -> bool {
        self.reply.has_more_to_fetch()
    }

    /// Observes the next bytes. Returns the bytes to send in their place; `None`: they are sent
    /// unchanged.
    pub fn pass(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let ReplyGate { reply, refusal, editing } = self;
        let Some(editing) = editing else {
            reply.feed(bytes);
            return None;
        };
        editing.pending.extend_from_slice(bytes);
        let mut used = 0;
        while !editing.has_ended
            && let Some((payload, length)) = whole_packet(editing.pending.get(used..).unwrap_or_default())
        {
            editing.note_number(editing.pending.get(used + 3).copied().unwrap_or_default(), payload.len());
            let packet = editing.pending.get(used..used + length).unwrap_or_default();
            let (phase, rows) = (reply.phase(), reply.rows);
            reply.feed(packet);
            used += length;
            let ends = match reply.rows > rows {
                true => editing.row(payload),
                false => editing.other(phase, &payload, reply.phase()),
            };
            if let Err(error) = ends {
                *refusal = Some(error.code);
                editing.end(&error);
            }
        }
        editing.pending.drain(..used);
        if editing.pending.len() > ROW_BYTES_MAX && !editing.has_ended {
            let error = too_long();
            *refusal = Some(error.code);
            editing.end(&error);
        }
        if editing.has_ended {
            reply.feed(&mem::take(&mut editing.pending));
        }
        Some(mem::take(&mut editing.out))
    }
}

impl Editing {
    /// Notes the number of a packet of the server, and the length of its payload. Numbers that are
    /// left out are those of a file that the client has sent.
    fn note_number(&mut self, number: u8, length: usize) {
        let (next, expected) = self.numbers.unwrap_or((number, number));
        let packets = length / PACKET_MAX + 1;
        let next = next.wrapping_add(number.wrapping_sub(expected));
        self.numbers = Some((next, number.wrapping_add(packets as u8)));
    }

    /// Edits a row. Fails with the error that ends the reply.
    fn row(&mut self, mut row: Vec<u8>) -> Result<(), Refusal> {
        let mut holds = false;
        for editor in &mut self.editors {
            holds |= editor.holds_rows();
            match editor.row(&mut row, self.is_binary) {
                Row::Keep => {}
                Row::End(error) => return Err(error),
                Row::Empty => self.is_emptied = true,
            }
            if self.is_emptied {
                self.held.clear();
                return Ok(());
            }
        }
        match holds {
            true => self.held.push(row),
            false => self.send(&row),
        }
        Ok(())
    }

    /// Passes a packet that is no row. `before`, `after`: the phases of the reply around it.
    fn other(&mut self, before: Phase, payload: &[u8], after: Phase) -> Result<(), Refusal> {
        match before {
            // A report of progress.
            _ if payload.starts_with(&[ERR, 0xFF, 0xFF]) => {}
            Phase::Head => {
                self.columns.clear();
                self.is_emptied = false;
            }
            Phase::Definitions => {
                let column =
                    Column::decode(payload, self.is_extended).map_err(|error| malformed(&error.to_string()))?;
                self.columns.push(column);
                if after != Phase::Definitions {
                    self.editors.iter_mut().for_each(|editor| editor.columns(&self.columns));
                }
            }
            Phase::Rows => {
                for row in mem::take(&mut self.held) {
                    self.send(&row);
                }
            }
            Phase::Other => {}
        }
        self.send(payload);
        Ok(())
    }

    /// Ends the reply with an error.
    fn end(&mut self, error: &Refusal) {
        self.held.clear();
        self.has_ended = true;
        let packet = error_packet(0, error.code, error.state, &error.message);
        self.send(packet.get(4..).unwrap_or_default());
    }

    /// Sends a payload, in as many packets as it needs.
    fn send(&mut self, payload: &[u8]) {
        let mut rest = payload;
        loop {
            let (part, behind) = rest.split_at(rest.len().min(PACKET_MAX));
            let (number, expected) = self.numbers.unwrap_or_default();
            self.numbers = Some((number.wrapping_add(1), expected));
            self.out.extend_from_slice(&(part.len() as u32).to_le_bytes()[..3]);
            self.out.push(number);
            self.out.extend_from_slice(part);
            rest = behind;
            if part.len() < PACKET_MAX {
                return;
            }
        }
    }
}

fn malformed(what: &str) -> Refusal {
    Refusal { code: 1835, state: "HY000", message: format!("A filter cannot read the server's reply: {what}") }
}

fn too_long() -> Refusal {
    malformed("a row is longer than 64 MiB")
}

/// Returns the payload of the first packet, joined with those that continue it, and the number of
/// their bytes. `None`: they have not arrived whole.
fn whole_packet(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut payload, mut at) = (Vec::new(), 0);
    loop {
        let [a, b, c, _] = *bytes.get(at..)?.first_chunk()?;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        payload.extend_from_slice(bytes.get(at + 4..at + 4 + length)?);
        at += 4 + length;
        if length < PACKET_MAX {
            return Some((payload, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps rows of one byte, and doubles them; ends or empties a result set with longer ones.
    #[derive(Debug)]
    struct Doubling {
        empties: bool,
    }

    impl ResultEditor for Doubling {
        fn columns(&mut self, columns: &[Column]) {
            assert_eq!(columns[0].original_name, "c");
        }

        fn row(&mut self, row: &mut Vec<u8>, _is_binary: bool) -> Row {
            match (row.len() > 1, self.empties) {
                (false, _) => row.push(row[0]),
                (true, true) => return Row::Empty,
                (true, false) => return Row::End(malformed("test")),
            }
            Row::Keep
        }

        fn holds_rows(&self) -> bool {
            self.empties
        }
    }

    fn packets(payloads: &[&[u8]]) -> Vec<u8> {
        let packet = |(number, payload): (usize, &&[u8])| {
            [&(payload.len() as u32).to_le_bytes()[..3], &[number as u8 + 1], payload].concat()
        };
        payloads.iter().enumerate().flat_map(packet).collect()
    }

    const COLUMN: &[u8] = b"\x03def\x01e\x01a\x01b\x03doc\x01c\x0c\x2d\x00\xff\xff\xff\xff\xfc\x90\x00\x00\x00\x00";
    const EOF: &[u8] = b"\xfe\0\0\x02\0";
    const EOF_BEFORE_MORE: &[u8] = b"\xfe\0\0\x0a\0";

    fn edited(reply: &[u8], chunk: usize, empties: bool) -> (Vec<u8>, ReplyGate) {
        let mut gate = ReplyGate::new(ReplyKind::Results, false);
        gate.edit(vec![Box::new(Doubling { empties })], false, false);
        let out = reply.chunks(chunk).flat_map(|bytes| gate.pass(bytes).unwrap()).collect();
        (out, gate)
    }

    #[test]
    fn rows_are_edited_in_chunks_of_any_size() {
        let reply = packets(&[b"\x01", COLUMN, EOF, b"x", b"y", EOF]);
        let expected = packets(&[b"\x01", COLUMN, EOF, b"xx", b"yy", EOF]);
        for chunk in [1, 7, 1000] {
            for empties in [false, true] {
                let (out, gate) = edited(&reply, chunk, empties);
                assert_eq!((out, gate.refusal, gate.reply.is_over()), (expected.clone(), None, true), "{chunk}");
            }
        }
    }

    #[test]
    fn replies_end_early() {
        let first: &[&[u8]] = &[b"\x01", COLUMN, EOF, b"x", b"long", b"y", EOF_BEFORE_MORE];
        let reply = packets(&[first, &[b"\x01", COLUMN, EOF, b"z", EOF]].concat());
        for chunk in [1, 1000] {
            let (out, gate) = edited(&reply, chunk, false);
            let begin = packets(&[b"\x01", COLUMN, EOF, b"xx"]);
            assert!(out.starts_with(&begin) && out[begin.len() + 3..][..2] == [5, 0xFF], "{chunk}");
            assert_eq!((gate.refusal, gate.reply.is_over()), (Some(1835), true));
            let (out, gate) = edited(&reply, chunk, true);
            let begin: &[&[u8]] = &[b"\x01", COLUMN, EOF, EOF_BEFORE_MORE];
            assert_eq!(out, packets(&[begin, &[b"\x01", COLUMN, EOF, b"zz", EOF]].concat()), "{chunk}");
            assert_eq!((gate.refusal, gate.reply.is_over()), (None, true));
        }
    }

    #[test]
    fn numbers_continue_after_a_file() {
        let mut gate = ReplyGate::new(ReplyKind::Results, false);
        gate.edit(vec![Box::new(Doubling { empties: true })], false, false);
        let request = packets(&[b"\xfbfile"]);
        assert_eq!(gate.pass(&request).unwrap(), request);
        let mut rest = packets(&[b"", b"", b"", b"\0\0\0\x0a\0\0\0", b"\x01", COLUMN, EOF, b"long", EOF]).split_off(12);
        let mut expected = packets(&[b"", b"", b"", b"\0\0\0\x0a\0\0\0", b"\x01", COLUMN, EOF, EOF]).split_off(12);
        assert_eq!(gate.pass(&mem::take(&mut rest)).unwrap(), mem::take(&mut expected));
    }

    #[test]
    fn long_rows_have_several_packets() {
        let row = vec![b'x'; PACKET_MAX + 1];
        let mut gate = ReplyGate::new(ReplyKind::Rows, false);
        gate.edit(vec![Box::new(Doubling { empties: true })], false, false);
        let parts: [&[u8]; 3] = [&row[..PACKET_MAX], b"x", EOF];
        assert_eq!(gate.pass(&packets(&parts)).unwrap(), packets(&[EOF]));
        let (payload, length) = whole_packet(&packets(&parts)).unwrap();
        assert_eq!((payload.len(), length), (PACKET_MAX + 1, PACKET_MAX + 9));
    }
}
