//! The hints in the comments of a statement.

use memchr::memchr2_iter;
use sql_classify::scanner::Scanner;
use sql_classify::{Hint, Lexis, RouteHint};

/// The parameters that limit the lag, in seconds; the second is MaxScale's.
const LAG_MAX: [&str; 2] = ["max_lag", "max_slave_replication_lag"];

/// What the comments of a statement ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints<'t> {
    /// The server.
    pub route: Option<RouteHint<'t>>,
    /// How far the replica may be behind.
    pub lag_max_seconds: Option<u64>,
}

/// The names with which hints begin, with the place of their rarest letter.
const ADDRESSEES: [(&str, usize); 2] = [("selkie", 3), ("maxscale", 2)];

/// Returns whether a text contains a name, in any case.
fn mentions(text: &str, &(name, at): &(&str, usize)) -> bool {
    let (bytes, name) = (text.as_bytes(), name.as_bytes());
    let Some(letter) = name.get(at) else { return false };
    memchr2_iter(*letter, letter.to_ascii_uppercase(), bytes).any(|found| {
        let start = found.checked_sub(at);
        let word = start.and_then(|start| bytes.get(start..start + name.len()));
        word.is_some_and(|word| word.eq_ignore_ascii_case(name))
    })
}

/// Returns the hints in the comments of a text; of several of a kind, the last.
pub fn hints(text: &str, lexis: Lexis) -> Hints<'_> {
    let mut hints = Hints::default();
    // Most statements have no comment for a gateway.
    if ADDRESSEES.iter().all(|addressee| !mentions(text, addressee)) {
        return hints;
    }
    let mut scanner = Scanner::new(text, lexis);
    loop {
        let Ok(token) = scanner.next_token() else { return Hints::default() };
        match scanner.hint() {
            Some(Hint::Route(route)) => hints.route = Some(*route),
            Some(Hint::Parameter(name, value)) if LAG_MAX.iter().any(|known| name.eq_ignore_ascii_case(known)) => {
                hints.lag_max_seconds = value.parse().ok();
            }
            _ => {}
        }
        if token.is_none() {
            return hints;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_ask_for_servers_and_limits() {
        let of = |text| hints(text, Lexis::default());
        let (route, lag) = (Some(RouteHint::Replica), Some(3));
        assert_eq!(of("SELECT 1"), Hints::default());
        assert_eq!(of("SELECT 1 - 2"), Hints::default());
        assert_eq!(of("SELECT 1 -- selkie max_lag=3"), Hints { route: None, lag_max_seconds: lag });
        let both = "/* selkie route to replica */ SELECT 1 /* maxscale max_slave_replication_lag=3 */";
        assert_eq!(of(both), Hints { route, lag_max_seconds: lag });
        assert_eq!(of("SELECT 1 -- selkie max_lag=x"), Hints::default());
        assert_eq!(of("SELECT '/* selkie max_lag=3 */'"), Hints::default());
    }
}
