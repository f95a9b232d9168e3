//! The allocator: how much is held, and how little an idle server may hold.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use steps::memory::{allocated, freed};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// mimalloc, with what is asked of it counted for each thread (see [`steps::memory`]).
struct Counting;

// SAFETY: every call is passed on to an allocator; counting allocates nothing and does not unwind.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as the caller says.
        unsafe { MiMalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as the caller says.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: as the caller says.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        steps::memory::resized(layout.size(), new_size);
        // SAFETY: as the caller says.
        unsafe { MiMalloc.realloc(pointer, layout, new_size) }
    }
}

/// Transparent huge pages come 2 MiB at a time, so every thread's first allocation of each size costs that much: an idle server
/// takes 19 MB with them and 10 MB without. What is large here (reply buffers) is kept and used again, so little is lost.
pub fn use_small_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        eprintln!("selkie: transparent huge pages stay on, which takes some more memory: {error}");
    }
}

/// Gives memory that has been free for a while back to the system. The allocator does so by itself, but only when somebody
/// allocates: a server that falls idle after a burst of large replies (eight of 15 MB) would stay at 210 MB.
pub fn give_back() {
    // SAFETY: takes no pointer, frees nothing that is in use, and may be called at any time from any thread.
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}
