//! The allocator: how much is held, and how little an idle server may hold.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
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
        or_again(|| unsafe { MiMalloc.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as the caller says.
        or_again(|| unsafe { MiMalloc.alloc_zeroed(layout) })
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
        // SAFETY: as the caller says; where it fails, the block is what it was.
        or_again(|| unsafe { MiMalloc.realloc(pointer, layout, new_size) })
    }
}

/// What is held back for when the system gives no more memory: enough for requests to end. Pages
/// that nothing was written to take address space alone.
const RESERVE: Layout = match Layout::from_size_align(32 << 20, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("this is a layout"),
};

static RESERVED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Sets the reserve aside.
pub fn reserve() {
    // SAFETY: the layout has a size.
    let reserved = unsafe { MiMalloc.alloc(RESERVE) };
    RESERVED.store(reserved, Ordering::Release);
}

/// Allocates, and where the system refuses, once more from the reserve. A program that gets no
/// memory is aborted.
#[inline]
fn or_again(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let pointer = allocate();
    if pointer.is_null() { again(&allocate) } else { pointer }
}

#[cold]
#[inline(never)]
fn again(allocate: &dyn Fn() -> *mut u8) -> *mut u8 {
    // From now on no more is held than there was room for.
    steps::memory::ran_out();
    let reserved = RESERVED.swap(null_mut(), Ordering::AcqRel);
    if !reserved.is_null() {
        // SAFETY: it was allocated with this layout, and whoever swaps it out is the only one that
        // has it.
        unsafe { MiMalloc.dealloc(reserved, RESERVE) };
    }
    give_back();
    allocate()
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
