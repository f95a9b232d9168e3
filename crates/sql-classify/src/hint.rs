//! Routing hints, which clients write in comments.

/// A routing hint in a comment: the place that a client names for its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteHint<'a> {
    Primary,
    Replica,
    /// The server of this name.
    Server(&'a str),
    /// The server of the statement before.
    Last,
}

/// A hint in a comment, as `/* selkie route to primary */`. Comments for MaxScale are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint<'a> {
    Route(RouteHint<'a>),
    /// A parameter of the router for this statement: `/* selkie max_lag=10 */`.
    Parameter(&'a str, &'a str),
}

impl<'a> Hint<'a> {
    /// Reads the hint in a comment. Returns `None` for other comments.
    pub fn parse(comment: &'a str) -> Option<Hint<'a>> {
        let comment = comment.trim_start();
        if !comment.starts_with(['s', 'S', 'm', 'M']) {
            return None;
        }
        let (addressee, rest) = comment.split_once(char::is_whitespace)?;
        if !["selkie", "maxscale"].iter().any(|name| addressee.eq_ignore_ascii_case(name)) {
            return None;
        }
        let mut words = rest.split_ascii_whitespace();
        let is = |word: Option<&str>, wanted: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(wanted));
        let first = words.next()?;
        if let Some((name, value)) = first.split_once('=') {
            return Some(Hint::Parameter(name, value));
        }
        if !first.eq_ignore_ascii_case("route") || !is(words.next(), "to") {
            return None;
        }
        let target = words.next()?;
        Some(Hint::Route(match target.to_ascii_lowercase().as_str() {
            "primary" | "master" => RouteHint::Primary,
            "replica" | "slave" => RouteHint::Replica,
            "last" => RouteHint::Last,
            "server" => RouteHint::Server(words.next()?),
            _ => return None,
        }))
    }
}
