//! Finds foreign bytes in replies, by sending each frame to two servers that differ only in what
//! other clients have sent to them.

use crate::change::Change;

/// A server, and the other clients of it.
pub trait Target {
    /// Lets other clients send and receive their data.
    fn disturb(&mut self);

    /// Sends a frame and returns everything that comes back until the server has closed the
    /// connection, or waits for more bytes.
    fn exchange(&mut self, frame: &[u8]) -> Vec<u8>;
}

/// A frame whose reply depends on other clients.
#[derive(Clone, Debug)]
pub struct Leak {
    pub frame: String,
    pub change: Option<Change>,
    pub replies: [Vec<u8>; 2],
}

/// After so many frames, other clients send their data again.
const DISTURBED_EVERY: usize = 16;

/// Two servers with different data of other clients.
pub struct Worlds<T> {
    pub worlds: [T; 2],
    /// Bytes that only other clients send.
    canary: Vec<u8>,
    sent: usize,
}

impl<T: Target> Worlds<T> {
    pub fn new(worlds: [T; 2], canary: &[u8]) -> Worlds<T> {
        Worlds { worlds, canary: canary.to_vec(), sent: 0 }
    }

    /// Sends a frame to both. Returns the replies if they differ, or contain the canary.
    pub fn check(&mut self, bytes: &[u8], name: &str, change: Option<&Change>) -> Option<Box<Leak>> {
        if self.sent.is_multiple_of(DISTURBED_EVERY) {
            self.worlds.iter_mut().for_each(Target::disturb);
        }
        self.sent += 1;
        let replies = self.worlds.each_mut().map(|world| world.exchange(bytes));
        let [first, second] = &replies;
        if first == second && !contains(first, &self.canary) {
            return None;
        }
        Some(Box::new(Leak { frame: name.to_owned(), change: change.cloned(), replies }))
    }
}

/// Returns whether `bytes` contain `part`.
pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a byte of memory behind the frame if the frame says that it is longer.
    struct Careless {
        memory: [u8; 4],
    }

    impl Target for Careless {
        fn disturb(&mut self) {}

        fn exchange(&mut self, frame: &[u8]) -> Vec<u8> {
            let mut all = frame.to_vec();
            all.extend(self.memory);
            all.get(1..1 + usize::from(frame[0])).unwrap_or_default().to_vec()
        }
    }

    #[test]
    fn a_single_foreign_byte_is_found() {
        let worlds = [Careless { memory: *b"ABCD" }, Careless { memory: *b"EFGH" }];
        let mut worlds = Worlds::new(worlds, b"AB");
        assert!(worlds.check(&[1, b'x'], "valid", None).is_none());
        let leak = worlds.check(&[2, b'x'], "too long", None).expect("a leak");
        assert_eq!(leak.replies, [b"xA".to_vec(), b"xE".to_vec()]);
        assert!(contains(b"xABy", b"AB") && !contains(b"xA", b"AB"));
    }
}
