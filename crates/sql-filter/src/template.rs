//! A text with places for values: `$1`, or `${1}` before a digit. `$$` is a dollar sign.

/// A text with places for values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(usize),
}

impl Template {
    /// Parses a text. Fails with a sentence about a `$` that is none of these.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut pieces = text.split('$');
        parts.extend(pieces.next().map(|first| Part::Text(first.to_owned())));
        while let Some(piece) = pieces.next() {
            if piece.is_empty() {
                // Two signs: the text goes on with the next piece.
                let Some(next) = pieces.next() else {
                    return Err(format!("{text:?} ends with $; write $$ for a dollar sign"));
                };
                parts.push(Part::Text(format!("${next}")));
                continue;
            }
            let (number, rest) = match piece.strip_prefix('{') {
                Some(braced) => braced.split_once('}').unwrap_or_default(),
                None => {
                    let end = piece.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(piece.len());
                    piece.split_at(end)
                }
            };
            let number = number
                .parse()
                .map_err(|_| format!("{text:?} has a $ without a number; write $1, ${{1}}, or $$ for a dollar sign"))?;
            parts.push(Part::Value(number));
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Template(parts))
    }

    /// Returns the numbers of the values, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(number) => Some(*number),
        })
    }

    /// Returns the text with its values. `None`: there is no such value.
    pub fn expand(&self, value: impl Fn(usize) -> Option<String>) -> Option<String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value(number) => out.push_str(&value(*number)?),
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_numbers() {
        let expand = |text: &str| {
            Template::parse(text).unwrap().expand(|number| ["a", "b"].get(number).map(|&value| value.to_owned()))
        };
        for (text, expected) in [("", Some("")), ("x$0y$1", Some("xayb")), ("${0}1$$0$$", Some("a1$0$")), ("$7", None)]
        {
            assert_eq!(expand(text).as_deref(), expected, "{text}");
        }
        for text in ["$", "$x", "${1", "${}", "a$$$"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
