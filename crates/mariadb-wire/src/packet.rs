//! Packets: a payload of any length is sent in frames of at most 16 MiB − 1, each with a length and
//! a sequence number before it.
//!
//! Source: <https://mariadb.com/kb/en/0-packet/>

use std::fmt;
use std::ops::Range;

/// The payload of a full frame; a shorter frame (perhaps an empty one) ends the packet.
pub const FRAME_BYTES_MAX: usize = 0xFF_FFFF;

const HEADER_BYTES: usize = 4;

/// The room for reading while the buffer is empty.
const IDLE_BYTES: usize = 32 * 1024;

/// The room for reading from a server that has more to send than fits, so that one system call
/// takes most of it.
const STREAM_BYTES: usize = 4 * IDLE_BYTES;

/// A packet exceeds the reader's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    pub limit: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a packet exceeds {} bytes", self.limit)
    }
}

impl std::error::Error for TooLarge {}

/// Collects bytes from a socket and returns packets, whole and contiguous, in its buffer.
///
/// The buffer grows with the bytes that have arrived, never by a header's length.
#[derive(Debug)]
pub struct PacketReader {
    bytes: Vec<u8>,
    /// Bytes that have arrived and have not been consumed: `start..end`.
    start: usize,
    end: usize,
    /// The last read has filled the buffer.
    filled_up: bool,
    limit: usize,
    sequence: u8,
}

impl PacketReader {
    /// `limit`: the largest payload to accept, in bytes.
    pub fn new(limit: usize) -> Self {
        PacketReader { bytes: vec![0; IDLE_BYTES], start: 0, end: 0, filled_up: false, limit, sequence: 0 }
    }

    /// Returns the space for bytes from the socket, which is never empty. The caller must report
    /// how many it put there to [`PacketReader::filled`].
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.bytes.len() > 64 * IDLE_BYTES {
                self.bytes = vec![0; IDLE_BYTES];
            }
        }
        if self.filled_up && self.bytes.len() < STREAM_BYTES {
            self.bytes.resize(STREAM_BYTES, 0);
        }
        // The buffer has the beginning of one packet.
        if self.start > 0 && self.bytes.len() - self.end < self.bytes.len() / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() - self.end < IDLE_BYTES / 2 {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Records that `count` bytes were put into [`PacketReader::space`].
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
        self.filled_up = self.end == self.bytes.len();
    }

    /// Consumes the next packet if it is complete. Returns its payload's range, for
    /// [`PacketReader::payload`], which is valid until more space is requested.
    pub fn next_packet(&mut self) -> Result<Option<Range<usize>>, TooLarge> {
        let Some((length, sequence)) = self.header(self.start) else { return Ok(None) };
        if length == FRAME_BYTES_MAX {
            return self.join_frames();
        }
        if length > self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        let payload = self.start + HEADER_BYTES;
        if self.end - payload < length {
            return Ok(None);
        }
        self.sequence = sequence;
        self.start = payload + length;
        Ok(Some(payload..payload + length))
    }

    /// Returns the payload at a range of [`PacketReader::next_packet`].
    #[inline]
    pub fn payload(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Returns the sequence number of the last packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Returns whether all bytes that have arrived are consumed.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn header(&self, at: usize) -> Option<(usize, u8)> {
        let &[a, b, c, sequence] = self.bytes.get(at..self.end)?.first_chunk::<HEADER_BYTES>()?;
        Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
    }

    /// Joins a packet of several frames, once all have arrived: closes the gaps of their headers.
    fn join_frames(&mut self) -> Result<Option<Range<usize>>, TooLarge> {
        let (mut at, mut total, mut frames) = (self.start, 0, 0);
        let sequence = loop {
            let Some((length, sequence)) = self.header(at) else { return Ok(None) };
            total += length;
            if total > self.limit {
                return Err(TooLarge { limit: self.limit });
            }
            at += HEADER_BYTES + length;
            if at > self.end {
                return Ok(None);
            }
            frames += 1;
            if length < FRAME_BYTES_MAX {
                break sequence;
            }
        };
        let payload = self.start + HEADER_BYTES;
        for frame in 1..frames {
            let from = payload + frame * (FRAME_BYTES_MAX + HEADER_BYTES);
            let until = (from + FRAME_BYTES_MAX).min(at);
            self.bytes.copy_within(from..until, payload + frame * FRAME_BYTES_MAX);
        }
        self.sequence = sequence;
        self.start = at;
        Ok(Some(payload..payload + total))
    }
}

/// Appends a packet whose payload `write` appends. Returns the next sequence number.
pub fn write_packet(sequence: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    write(out);
    let length = out.len() - start - HEADER_BYTES;
    if length < FRAME_BYTES_MAX {
        out[start..start + HEADER_BYTES].copy_from_slice(&frame_header(length, sequence));
        return sequence.wrapping_add(1);
    }
    split_frames(start, length, sequence, out)
}

/// Inserts the headers between frames, from the last frame to the first.
fn split_frames(start: usize, length: usize, sequence: u8, out: &mut Vec<u8>) -> u8 {
    let frames = length / FRAME_BYTES_MAX + 1;
    out.resize(out.len() + (frames - 1) * HEADER_BYTES, 0);
    for frame in (0..frames).rev() {
        let taken = frame * FRAME_BYTES_MAX;
        let frame_length = (length - taken).min(FRAME_BYTES_MAX);
        let from = start + HEADER_BYTES + taken;
        let to = from + frame * HEADER_BYTES;
        out.copy_within(from..from + frame_length, to);
        let header = frame_header(frame_length, sequence.wrapping_add(frame as u8));
        out[to - HEADER_BYTES..to].copy_from_slice(&header);
    }
    sequence.wrapping_add(frames as u8)
}

fn frame_header(length: usize, sequence: u8) -> [u8; HEADER_BYTES] {
    let [a, b, c, _] = (length as u32).to_le_bytes();
    [a, b, c, sequence]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_round_trip(length: usize, step: usize) {
        let payload: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
        let mut wire = b"before".to_vec();
        let after = write_packet(7, &mut wire, |out| out.extend_from_slice(&payload));
        assert_eq!(after, 7 + (length / FRAME_BYTES_MAX) as u8 + 1);
        write_packet(0, &mut wire, |out| out.extend_from_slice(b"next"));

        let mut reader = PacketReader::new(64 << 20);
        let mut rest = &wire[6..];
        let mut seen = Vec::new();
        while seen.len() < 2 {
            match reader.next_packet().unwrap() {
                Some(range) => seen.push(reader.payload(range).to_vec()),
                None => {
                    let space = reader.space();
                    let count = rest.len().min(step).min(space.len());
                    space[..count].copy_from_slice(&rest[..count]);
                    rest = &rest[count..];
                    reader.filled(count);
                }
            }
        }
        assert!(seen[0] == payload && seen[1] == b"next" && reader.is_empty());
    }

    #[test]
    fn packets_of_any_length_are_decoded_as_encoded() {
        check_round_trip(0, 1);
        check_round_trip(1, 3);
        check_round_trip(70_000, 1_000);
        for length in
            [FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 1, 2 * FRAME_BYTES_MAX, 2 * FRAME_BYTES_MAX + 9]
        {
            check_round_trip(length, 1 << 20);
        }
    }

    #[test]
    fn oversized_packets_are_refused_before_they_arrive() {
        let mut reader = PacketReader::new(1000);
        reader.space()[..4].copy_from_slice(&[0xE9, 3, 0, 0]);
        reader.filled(4);
        assert_eq!(reader.next_packet(), Err(TooLarge { limit: 1000 }));
    }
}
