//! Documents from short text, for tests: `{a: 1, b: [2.5, 'x', 7L], c: /re/i, d: null}`.

#![allow(clippy::unwrap_used, reason = "bad text is an error of the test that contains it")]

use document::{ArrayWriter, Doc, DocBuf, DocWriter, Kind, Value, ValueBuf};

/// Parses a document; panics on invalid text.
pub fn document(text: &str) -> DocBuf {
    let mut bytes = Vec::new();
    match value(text).as_value() {
        Value::Document(document) => bytes.extend_from_slice(document.as_bytes()),
        other => panic!("not a document: {other:?}"),
    }
    DocBuf::from_vec(bytes).unwrap()
}

/// Parses any value; panics on invalid text.
pub fn value(text: &str) -> ValueBuf {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value();
    parser.skip_blanks();
    assert!(parser.at == text.len(), "text left over: {}", &text[parser.at..]);
    value
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn until(&mut self, ends: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(ends).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn quoted(&mut self) -> &'t str {
        let text = self.until(|character| character == '\'');
        self.at += 1;
        text
    }

    fn value(&mut self) -> ValueBuf {
        self.skip_blanks();
        if self.eat("{") {
            return self.document();
        }
        if self.eat("[") {
            return self.array();
        }
        if self.eat("'") {
            return Value::String(self.quoted()).to_owned();
        }
        if self.eat("/") {
            let pattern = self.until(|character| character == '/');
            self.at += 1;
            let options = self.until(|character| !character.is_alphabetic());
            return Value::Regex { pattern, options }.to_owned();
        }
        if self.eat("Date(") {
            let milliseconds = self.until(|character| character == ')').parse().unwrap();
            self.at += 1;
            return Value::DateTime(milliseconds).to_owned();
        }
        if self.eat("Timestamp(") {
            let (time, increment) = self.until(|character| character == ')').split_once(',').unwrap();
            self.at += 1;
            let (time, increment) = (time.trim().parse().unwrap(), increment.trim().parse().unwrap());
            return Value::Timestamp { time, increment }.to_owned();
        }
        self.word()
    }

    fn word(&mut self) -> ValueBuf {
        let word = self.until(|character| character.is_whitespace() || ",]}:".contains(character));
        match word {
            "null" => Value::Null.to_owned(),
            "true" => Value::Boolean(true).to_owned(),
            "false" => Value::Boolean(false).to_owned(),
            "undefined" => Value::Undefined.to_owned(),
            "MinKey" => Value::MinKey.to_owned(),
            "MaxKey" => Value::MaxKey.to_owned(),
            _ => match (word.strip_suffix('L'), word.parse::<i32>()) {
                (Some(digits), _) => Value::Int64(digits.parse().unwrap()).to_owned(),
                (None, Ok(number)) => Value::Int32(number).to_owned(),
                (None, Err(_)) => Value::Double(word.parse().unwrap_or_else(|_| panic!("bad word {word}"))).to_owned(),
            },
        }
    }

    fn document(&mut self) -> ValueBuf {
        let mut bytes = Vec::new();
        let mut writer = DocWriter::begin(&mut bytes);
        while !self.eat("}") {
            let key = if self.eat("'") { self.quoted() } else { self.until(|character| character == ':') };
            assert!(self.eat(":"), "no colon behind {key}");
            writer.append(key.trim(), &self.value());
            self.eat(",");
        }
        drop(writer);
        Value::Document(Doc::from_bytes(&bytes).unwrap()).to_owned()
    }

    fn array(&mut self) -> ValueBuf {
        let mut bytes = Vec::new();
        let mut writer = ArrayWriter::begin(&mut bytes);
        while !self.eat("]") {
            writer.push(&self.value());
            self.eat(",");
        }
        drop(writer);
        let array = Value::Array(Doc::from_bytes(&bytes).unwrap()).to_owned();
        assert_eq!(array.kind(), Kind::Array);
        array
    }
}
