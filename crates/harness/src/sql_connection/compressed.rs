//! The client's side of the compressed protocol: packets travel in frames, and large frames are
//! compressed.
//!
//! Source: <https://mariadb.com/kb/en/0-packet/#compressed-packet>

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use std::io::{self, Read, Write};

const HEADER_BYTES: usize = 7;
/// Shorter frames are sent uncompressed, as MariaDB's own client does.
const COMPRESSED_BYTES_MIN: usize = 50;

pub struct Compressed<S> {
    socket: S,
    sequence: u8,
    /// Bytes from the socket that are not decoded yet.
    incoming: Vec<u8>,
    /// Bytes of packets, of which the first `read` have been read.
    unpacked: Vec<u8>,
    read: usize,
}

impl<S> Compressed<S> {
    pub fn new(socket: S) -> Compressed<S> {
        Compressed { socket, sequence: 0, incoming: Vec::new(), unpacked: Vec::new(), read: 0 }
    }

    /// Decodes the first frame and returns true, if it has arrived completely.
    fn unpack(&mut self) -> io::Result<bool> {
        let Some((header, rest)) = self.incoming.split_first_chunk::<HEADER_BYTES>() else { return Ok(false) };
        let number =
            |at: usize| usize::from(header[at]) | usize::from(header[at + 1]) << 8 | usize::from(header[at + 2]) << 16;
        let (length, unpacked_length) = (number(0), number(4));
        let Some(frame) = rest.get(..length) else { return Ok(false) };
        self.sequence = header[3].wrapping_add(1);
        self.unpacked.clear();
        self.read = 0;
        if unpacked_length == 0 {
            self.unpacked.extend_from_slice(frame);
        } else {
            self.unpacked.reserve(unpacked_length);
            let done = Decompress::new(true).decompress_vec(frame, &mut self.unpacked, FlushDecompress::Finish);
            done.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        self.incoming.drain(..HEADER_BYTES + length);
        Ok(true)
    }
}

impl<S: Read> Read for Compressed<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.unpacked.len() {
            if self.unpack()? {
                continue;
            }
            let mut bytes = [0; 16 << 10];
            let count = self.socket.read(&mut bytes)?;
            if count == 0 {
                return Ok(0);
            }
            self.incoming.extend_from_slice(&bytes[..count]);
        }
        let rest = &self.unpacked[self.read..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}

impl<S: Write> Write for Compressed<S> {
    /// Sends `bytes`, a whole command, as one frame.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Sequence numbers restart with each command. No command here is larger than a frame.
        self.sequence = 0;
        let mut packed = Vec::new();
        if bytes.len() >= COMPRESSED_BYTES_MIN {
            packed.reserve(bytes.len() + 64);
            let done =
                Compress::new(Compression::default(), true).compress_vec(bytes, &mut packed, FlushCompress::Finish);
            done.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        let (body, unpacked_length) = if packed.is_empty() { (bytes, 0) } else { (&packed[..], bytes.len()) };
        let (length, unpacked_length) = ((body.len() as u32).to_le_bytes(), (unpacked_length as u32).to_le_bytes());
        let mut frame = Vec::with_capacity(HEADER_BYTES + body.len());
        frame.extend_from_slice(&length[..3]);
        frame.push(self.sequence);
        frame.extend_from_slice(&unpacked_length[..3]);
        frame.extend_from_slice(body);
        self.socket.write_all(&frame)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_decoded_as_they_were_encoded() {
        for text in [b"short".to_vec(), b"long ".repeat(1000)] {
            let mut out = Compressed::new(Vec::new());
            out.write_all(&text).unwrap();
            assert!(out.socket.len() <= text.len() + HEADER_BYTES);
            let mut back = vec![0; text.len()];
            let mut reader = Compressed::new(out.socket.as_slice());
            reader.read_exact(&mut back).unwrap();
            assert_eq!(back, text);
        }
    }

    #[test]
    fn damaged_frames_are_errors() {
        let frame = [5, 0, 0, 0, 9, 0, 0, 1, 2, 3, 4, 5];
        assert!(Compressed::new(&frame[..]).read(&mut [0; 9]).is_err());
        assert_eq!(Compressed::new(&frame[..9]).read(&mut [0; 9]).unwrap(), 0);
    }
}
