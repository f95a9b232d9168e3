//! The compressors, and their working memory.

use crate::DecodeError;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::fmt;

/// A compressor, with its id on the wire. Id 0, no compression, is used only between servers;
/// MongoDB treats it as unknown in a client's message.
///
/// Source:
/// <https://github.com/mongodb/specifications/blob/master/source/compression/OP_COMPRESSED.md#compressor-ids>
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compressor {
    Snappy = 1,
    Zlib = 2,
    Zstd = 3,
}

/// MongoDB's defaults, for connection strings without a level.
const ZLIB_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// The largest ratio of a deflate stream. A message that claims more is refused before memory is
/// allocated for it.
const ZLIB_RATIO_MAX: usize = 1032;

impl Compressor {
    pub const ALL: [Compressor; 3] = [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

    pub fn from_id(id: u8) -> Option<Compressor> {
        Self::ALL.into_iter().find(|compressor| *compressor as u8 == id)
    }

    /// Returns the compressor with a name, as in the handshake's `compression` array.
    pub fn from_name(name: &str) -> Option<Compressor> {
        Self::ALL.into_iter().find(|compressor| compressor.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }
}

/// The compressors' working memory, kept between messages: setting it up costs more than
/// compressing a small message. Each part is created on first use. One per worker thread.
#[derive(Default)]
pub struct Codecs {
    snappy: Option<Box<snap::raw::Encoder>>,
    deflate: Option<Compress>,
    inflate: Option<Decompress>,
    zstd_pack: Option<zstd::bulk::Compressor<'static>>,
    zstd_unpack: Option<zstd::bulk::Decompressor<'static>>,
}

impl Codecs {
    /// Returns `prefix`, followed by the decompressed bytes, which must be exactly `size`.
    pub(crate) fn decompress(
        &mut self,
        compressor: Compressor,
        packed: &[u8],
        prefix: &[u8],
        size: usize,
    ) -> Result<Vec<u8>, DecodeError> {
        match compressor {
            Compressor::Snappy => {
                let announced = snap::raw::decompress_len(packed).map_err(|_| BROKEN)?;
                check_size(announced, size)?;
            }
            Compressor::Zlib if size > packed.len().saturating_mul(ZLIB_RATIO_MAX) => return Err(WRONG_SIZE),
            Compressor::Zstd => {
                if let Ok(Some(announced)) = zstd::zstd_safe::get_frame_content_size(packed) {
                    check_size(usize::try_from(announced).unwrap_or(usize::MAX), size)?;
                }
            }
            Compressor::Zlib => {}
        }
        let mut out = Vec::with_capacity(prefix.len() + size);
        out.extend_from_slice(prefix);
        match compressor {
            Compressor::Snappy => {
                out.resize(prefix.len() + size, 0);
                snap::raw::Decoder::new().decompress(packed, &mut out[prefix.len()..]).map_err(|_| BROKEN)?;
            }
            Compressor::Zlib => self.inflate(packed, &mut out)?,
            Compressor::Zstd => self.unpack_zstd(packed, size, &mut out)?,
        }
        check_size(out.len() - prefix.len(), size)?;
        Ok(out)
    }

    /// Appends `plain` to `out`, compressed.
    pub(crate) fn compress(
        &mut self,
        compressor: Compressor,
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let at = out.len();
        match compressor {
            Compressor::Snappy => {
                out.resize(at + snap::raw::max_compress_len(plain.len()), 0);
                let encoder = self.snappy.get_or_insert_with(|| Box::new(snap::raw::Encoder::new()));
                let written = encoder.compress(plain, &mut out[at..]).map_err(|_| BROKEN)?;
                out.truncate(at + written);
            }
            Compressor::Zlib => self.deflate(plain, out)?,
            Compressor::Zstd => {
                let packed = match &mut self.zstd_pack {
                    Some(context) => context,
                    empty => empty.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(|_| BROKEN)?),
                };
                out.extend_from_slice(&packed.compress(plain).map_err(|_| BROKEN)?);
            }
        }
        Ok(())
    }

    /// Decompresses into `out`, up to its capacity.
    fn inflate(&mut self, packed: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let state = self.inflate.get_or_insert_with(|| Decompress::new(true));
        state.reset(true);
        match state.decompress_vec(packed, out, FlushDecompress::Finish) {
            Ok(Status::StreamEnd) if state.total_in() == packed.len() as u64 => Ok(()),
            Ok(Status::Ok | Status::BufError) => Err(WRONG_SIZE),
            _ => Err(BROKEN),
        }
    }

    fn deflate(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let state = self.deflate.get_or_insert_with(|| Compress::new(Compression::new(ZLIB_LEVEL), true));
        state.reset();
        // zlib's own bound (`compressBound`), with room for its header.
        out.reserve(plain.len() + plain.len() / 1000 + 64);
        loop {
            let done = state.total_in() as usize;
            match state.compress_vec(&plain[done..], out, FlushCompress::Finish) {
                Ok(Status::StreamEnd) => return Ok(()),
                Ok(_) => out.reserve(plain.len() / 8 + 64),
                Err(_) => return Err(BROKEN),
            }
        }
    }

    fn unpack_zstd(&mut self, packed: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let context = match &mut self.zstd_unpack {
            Some(context) => context,
            empty => empty.insert(zstd::bulk::Decompressor::new().map_err(|_| BROKEN)?),
        };
        // Fails if the content is larger than `size`.
        out.extend_from_slice(&context.decompress(packed, size).map_err(|_| BROKEN)?);
        Ok(())
    }
}

impl fmt::Debug for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codecs").finish_non_exhaustive()
    }
}

const BROKEN: DecodeError = DecodeError::Compression("the compressed bytes are damaged");
const WRONG_SIZE: DecodeError = DecodeError::Compression("the uncompressed size is not what the message says");

fn check_size(found: usize, expected: usize) -> Result<(), DecodeError> {
    if found == expected { Ok(()) } else { Err(WRONG_SIZE) }
}
