//! An allocator that fills new memory with a letter, in the place of earlier contents. A test makes
//! it its `#[global_allocator]`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

static LETTER: AtomicU8 = AtomicU8::new(0);

/// Sets the letter that new memory contains from now on.
pub fn fill_with(letter: u8) {
    LETTER.store(letter, Relaxed);
}

/// The allocator.
#[derive(Debug)]
pub struct Filling;

// SAFETY: the system's allocator does the work; new memory is only written to.
unsafe impl GlobalAlloc for Filling {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        let memory = unsafe { System.alloc(layout) };
        if !memory.is_null() {
            // SAFETY: the memory is new, and as long as the layout says.
            unsafe { memory.write_bytes(LETTER.load(Relaxed), layout.size()) };
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
}
