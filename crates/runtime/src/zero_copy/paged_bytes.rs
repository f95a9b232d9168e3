//! Bytes in pages of their own, from which the kernel may still send after they are dropped here.

use bytes::Bytes;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::io;
use std::ops::{Deref, RangeBounds};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most that exist at a time. Linux allows a process some 65,000 mappings, and the allocator
/// needs some of them.
const EXISTING_MAX: usize = 16 << 10;

static EXISTING: AtomicUsize = AtomicUsize::new(0);

/// Immutable bytes in a mapping of their own. It is never written again, and pages that are
/// unmapped while the kernel refers to them are not reused until then. So they can be sent without
/// a copy.
#[derive(Clone, Debug)]
pub struct PagedBytes(Bytes);

impl PagedBytes {
    /// Copies bytes to offset `at` of the first page. Fails with `OutOfMemory` if there are too
    /// many, or the system has no memory.
    pub fn copy_of(bytes: &[u8], at: usize) -> io::Result<PagedBytes> {
        let mut pages = Pages::new(at + bytes.len())?;
        pages.as_mut().get_mut(at..).ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(bytes);
        Ok(PagedBytes(Bytes::from_owner(pages.into_read_only()?).slice(at..)))
    }

    /// Returns a part of them, in the same pages.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> PagedBytes {
        PagedBytes(self.0.slice(range))
    }

    /// Returns them as plain [`Bytes`].
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Deref for PagedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// One anonymous mapping.
struct Pages {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: this value owns the mapping, which is only read once it is shared.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    fn new(length: usize) -> io::Result<Pages> {
        if length == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if EXISTING.fetch_add(1, Ordering::Relaxed) >= EXISTING_MAX {
            EXISTING.fetch_sub(1, Ordering::Relaxed);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // Populated at once, since it is about to be written from one end to the other.
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the system chooses the address, so that no existing mapping is replaced.
        let mapped = unsafe { mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let start = mapped.ok().and_then(|start| NonNull::new(start.cast::<u8>()));
        if start.is_none() {
            EXISTING.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(Pages { start: start.ok_or(io::ErrorKind::OutOfMemory)?, length })
    }

    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is that long, initialized with zeros, and borrowed as `self` is.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Makes the pages read-only; a later write would crash.
    fn into_read_only(self) -> io::Result<Pages> {
        // SAFETY: this value owns the pages, and no mutable reference to them exists.
        unsafe { mprotect(self.start.as_ptr().cast(), self.length, MprotectFlags::READ) }?;
        Ok(self)
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the mapping is that long, initialized, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and only the kernel may still refer to its pages,
        // which it holds itself.
        if let Err(error) = unsafe { munmap(self.start.as_ptr().cast(), self.length) } {
            tracing::error!(%error, "cannot unmap the pages of a cached reply");
        }
        EXISTING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_begins_at_its_offset_and_can_be_sliced() {
        for length in [0, 1, 4095, 4096, 100_000] {
            let bytes: Vec<u8> = (0..length).map(|number: usize| number as u8).collect();
            let paged = PagedBytes::copy_of(&bytes, 37).unwrap();
            assert_eq!(*paged, *bytes);
            assert_eq!(*paged.slice(length / 2..), bytes[length / 2..]);
            if length > 0 {
                assert_eq!(paged.as_ptr().addr() % 4096, 37);
            }
            assert_eq!(paged.into_bytes(), bytes);
        }
        assert!(PagedBytes::copy_of(&[], 0).is_err());
    }
}
