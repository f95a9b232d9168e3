//! The syntax of expressions, in braces in a scenario's texts: `{int(1, 6)}`, `{accounts - 1}`,
//! `user-{index}@example.org`.

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Expression(Term),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    Integer(i64),
    Double(f64),
    Text(String),
    Name(String),
    Call(String, Vec<Term>),
    Arithmetic(Operator, Box<Term>, Box<Term>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// Deeper nesting is an error.
const DEPTH_MAX: usize = 32;

/// Parses a text. `{{` and `}}` are literal braces.
pub fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        plain += &rest[..at];
        let brace = &rest[at..at + 1];
        let behind = &rest[at + 1..];
        if let Some(behind) = behind.strip_prefix(brace) {
            plain += brace;
            rest = behind;
        } else if brace == "{" {
            let (term, behind) = in_braces(behind)?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Expression(term));
            rest = behind;
        } else {
            return Err("a } without its {; write }} for a literal brace".to_owned());
        }
    }
    plain += rest;
    if !plain.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// Parses an expression up to its closing brace; returns it and the rest of the text.
fn in_braces(text: &str) -> Result<(Term, &str), String> {
    let mut parser = Parser { rest: text, depth: 0 };
    let term = parser.sum()?;
    match parser.token().strip_prefix('}') {
        Some(behind) => Ok((term, behind)),
        None if parser.rest.is_empty() => Err("a { without its }; write {{ for a literal brace".to_owned()),
        None => Err(format!("unexpected {:?}", parser.rest.split('}').next().unwrap_or_default().trim())),
    }
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Returns the rest of the text without leading blanks.
    fn token(&mut self) -> &'t str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn take(&mut self, expected: char) -> bool {
        let taken = self.token().strip_prefix(expected);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    fn take_operator(&mut self, operators: &[(char, Operator)]) -> Option<Operator> {
        operators.iter().find(|(sign, _)| self.take(*sign)).map(|(_, operator)| *operator)
    }

    fn sum(&mut self) -> Result<Term, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("nested deeper than {DEPTH_MAX} levels"));
        }
        let mut left = self.product()?;
        while let Some(operator) = self.take_operator(&[('+', Operator::Add), ('-', Operator::Subtract)]) {
            left = Term::Arithmetic(operator, Box::new(left), Box::new(self.product()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Term, String> {
        let mut left = self.factor()?;
        let operators = [('*', Operator::Multiply), ('/', Operator::Divide), ('%', Operator::Remainder)];
        while let Some(operator) = self.take_operator(&operators) {
            left = Term::Arithmetic(operator, Box::new(left), Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Term, String> {
        match self.token().chars().next() {
            Some('0'..='9' | '-') => self.number(),
            Some('\'') => self.text(),
            Some('(') => {
                self.take('(');
                let inner = self.sum()?;
                if self.take(')') { Ok(inner) } else { Err("a ( without its )".to_owned()) }
            }
            Some(first) if first.is_ascii_alphabetic() => self.name(),
            Some('}') | None => Err("a value is missing".to_owned()),
            Some(other) => Err(format!("{other:?} cannot begin a value")),
        }
    }

    fn number(&mut self) -> Result<Term, String> {
        let sign = usize::from(self.rest.starts_with('-'));
        let end = self.rest[sign..].find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, rest) = self.rest.split_at(end.map_or(self.rest.len(), |end| sign + end));
        self.rest = rest;
        let term = if digits.contains('.') {
            digits.parse().map(Term::Double).ok()
        } else {
            digits.parse().map(Term::Integer).ok()
        };
        term.ok_or_else(|| format!("{digits:?} is not a number"))
    }

    fn text(&mut self) -> Result<Term, String> {
        let Some((text, rest)) = self.rest.get(1..).and_then(|rest| rest.split_once('\'')) else {
            return Err("a text that begins with ' and does not end".to_owned());
        };
        self.rest = rest;
        Ok(Term::Text(text.to_owned()))
    }

    fn name(&mut self) -> Result<Term, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if !self.take('(') {
            return Ok(Term::Name(name.to_owned()));
        }
        let mut arguments = Vec::new();
        if !self.take(')') {
            loop {
                arguments.push(self.sum()?);
                if self.take(')') {
                    break;
                }
                if !self.take(',') {
                    return Err(format!("the arguments of {name} do not end"));
                }
            }
        }
        Ok(Term::Call(name.to_owned(), arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Term {
        match pieces(text).unwrap().as_slice() {
            [Piece::Expression(term)] => term.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn texts_with_expressions_in_them() {
        assert_eq!(pieces("").unwrap(), [Piece::Text(String::new())]);
        assert_eq!(pieces("a {{b}}").unwrap(), [Piece::Text("a {b}".into())]);
        assert_eq!(
            pieces("user-{index}@x").unwrap(),
            [Piece::Text("user-".into()), Piece::Expression(Term::Name("index".into())), Piece::Text("@x".into())]
        );
        assert_eq!(
            only("{ pick('a, b', 1.5, -2) }"),
            Term::Call("pick".into(), vec![Term::Text("a, b".into()), Term::Double(1.5), Term::Integer(-2)])
        );
    }

    #[test]
    fn products_bind_tighter_than_sums() {
        let integer = |number| Box::new(Term::Integer(number));
        let product = |a, b| Box::new(Term::Arithmetic(Operator::Multiply, integer(a), integer(b)));
        assert_eq!(only("{1 + 2 * 3}"), Term::Arithmetic(Operator::Add, integer(1), product(2, 3)));
        assert_eq!(only("{4*5-6}"), Term::Arithmetic(Operator::Subtract, product(4, 5), integer(6)));
        let sum = Box::new(Term::Arithmetic(Operator::Add, integer(1), integer(2)));
        assert_eq!(only("{(1+2)%3}"), Term::Arithmetic(Operator::Remainder, sum, integer(3)));
    }

    #[test]
    fn errors_are_described() {
        for (text, part) in [
            ("{int(1, 2)", "without its }"),
            ("a}", "without its {"),
            ("{}", "missing"),
            ("{1 2}", "\"2\""),
            ("{int(1 2)}", "arguments of int"),
            ("{(1}", "without its )"),
            ("{'a}", "does not end"),
            ("{1.2.3}", "not a number"),
            ("{99999999999999999999}", "not a number"),
            ("{§}", "cannot begin a value"),
        ] {
            let error = pieces(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(pieces(&("{".to_owned() + &"(".repeat(100_000))).is_err());
    }
}
