//! Sending replies from memory without a copy: bytes in pages of their own ([`PagedBytes`]), which
//! the kernel moves to the socket ([`splice`]).

pub mod paged_bytes;
pub mod splice;

pub use paged_bytes::PagedBytes;
