//! The allocator: counts the memory of each thread, and returns free memory to the system.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use steps::memory::{allocated, freed};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// mimalloc, with each thread's allocations counted (see [`steps::memory`]).
struct Counting;

// SAFETY: every call is forwarded to an allocator; counting allocates nothing and does not unwind.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller upholds the contract.
        or_again(|| unsafe { MiMalloc.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller upholds the contract.
        or_again(|| unsafe { MiMalloc.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        steps::memory::resized(layout.size(), new_size);
        // SAFETY: the caller upholds the contract; on failure, the block is unchanged.
        or_again(|| unsafe { MiMalloc.realloc(pointer, layout, new_size) })
    }
}

/// Memory held in reserve for when the system has no more: enough for requests to finish. Pages
/// that are never written take only address space.
const RESERVE: Layout = match Layout::from_size_align(32 << 20, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("this is a layout"),
};

static RESERVED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Allocates the reserve.
pub fn reserve() {
    // SAFETY: the layout's size is not zero.
    let reserved = unsafe { MiMalloc.alloc(RESERVE) };
    RESERVED.store(reserved, Ordering::Release);
}

/// Allocates, and if the system refuses, once more from the reserve. Without memory the program is
/// aborted.
#[inline]
fn or_again(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let pointer = allocate();
    if pointer.is_null() { again(&allocate) } else { pointer }
}

#[cold]
#[inline(never)]
fn again(allocate: &dyn Fn() -> *mut u8) -> *mut u8 {
    // From now on, no more memory may be held than there was.
    steps::memory::ran_out();
    let reserved = RESERVED.swap(null_mut(), Ordering::AcqRel);
    if !reserved.is_null() {
        // SAFETY: it was allocated with this layout, and the thread that swaps the pointer out owns
        // it.
        unsafe { MiMalloc.dealloc(reserved, RESERVE) };
    }
    give_back();
    allocate()
}

/// Transparent huge pages have 2 MiB, which every thread's first allocation of each size would
/// take: an idle server takes 19 MB with them and 10 MB without. Large buffers (of replies) are
/// reused, so little is lost.
pub fn use_small_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        eprintln!("selkie: transparent huge pages stay on, which takes some more memory: {error}");
    }
}

/// Returns memory that has been free for a while to the system. The allocator does so itself, but
/// only on allocations: a server that becomes idle after a burst of large replies (eight of 15 MB)
/// would stay at 210 MB.
pub fn give_back() {
    // SAFETY: takes no pointer, frees nothing in use, and may be called at any time from any
    // thread.
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}
