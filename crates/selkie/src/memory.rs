//! The allocator: how little an idle server may hold.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
