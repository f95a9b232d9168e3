//! Encodes PNG: true color, 8 bits per channel, unfiltered.
//!
//! plotters' own encoder needs the crates image and png, and these enable features of flate2 that
//! would make cargo compile most of Selkie twice.
//!
//! Source: <https://www.w3.org/TR/png-3/>

use anyhow::Result;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::Write;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
const TRUE_COLOR: u8 = 2;
const BYTES_PER_PIXEL: usize = 3;

/// Encodes rows of RGB pixels as an image.
pub fn encode((width, height): (u32, u32), pixels: &[u8]) -> Result<Vec<u8>> {
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // Bit depth, color type, and the only methods of compression, filtering and interlacing.
    header.extend([8, TRUE_COLOR, 0, 0, 0]);
    let mut compressor = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in pixels.chunks(width as usize * BYTES_PER_PIXEL) {
        // Each row begins with its filter: none.
        compressor.write_all(&[0])?;
        compressor.write_all(row)?;
    }
    let mut image = SIGNATURE.to_vec();
    append_chunk(&mut image, b"IHDR", &header);
    append_chunk(&mut image, b"IDAT", &compressor.finish()?);
    append_chunk(&mut image, b"IEND", &[]);
    Ok(image)
}

fn append_chunk(image: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let mut crc = Crc::new();
    crc.update(kind);
    crc.update(data);
    image.extend((data.len() as u32).to_be_bytes());
    image.extend(kind);
    image.extend(data);
    image.extend(crc.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_its_chunks() {
        let image = encode((2, 1), &[255, 0, 0, 0, 0, 255]).unwrap();
        assert!(image.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x01\x08\x02\0\0\0"));
        // The length, the kind and the well-known checksum of the last chunk.
        assert!(image.ends_with(b"\0\0\0\0IEND\xaeB`\x82"));
    }
}
