//! Suggestions for unknown names.

/// From this length on, the beginning of a name suggests the name.
const BEGINNING_MIN: usize = 3;

/// Returns the name nearest to `written`, if it is near enough to be a typing error.
pub fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let limit = (written.chars().count() / 3).max(1);
    let folded = |name: &str| name.to_lowercase().replace('_', "-");
    let written = folded(written);
    let is_beginning = |name: &str| written.len() >= BEGINNING_MIN && name.starts_with(&written);
    let distances = names.into_iter().map(|name| {
        let folded = folded(name);
        (if is_beginning(&folded) { 1 } else { distance(&written, &folded) }, name)
    });
    distances.filter(|&(distance, _)| distance <= limit).min_by_key(|&(distance, _)| distance).map(|(_, name)| name)
}

/// Returns the insertions, deletions, replacements and swaps of neighbors between two names.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before_last = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, &a) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &b) in to.iter().enumerate() {
            let mut best = (last[column] + usize::from(a != b)).min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && a == to[column - 1] && from[row - 1] == b {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognized() {
        let names = ["listen", "threads", "log", "allow-remote", "drain-seconds"];
        let check = |written, meant| assert_eq!(nearest(written, names), meant, "{written}");
        check("lisen", Some("listen"));
        check("litsen", Some("listen"));
        check("thread", Some("threads"));
        check("allow_remote", Some("allow-remote"));
        check("Log", Some("log"));
        check("drain", Some("drain-seconds"));
        check("port", None);
        check("", None);
    }
}
