//! The messages of a client.

use super::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The longest message of a client.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The shortest nonce of a client, as in MongoDB.
const NONCE_BYTES_MIN: usize = 4;

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFirst {
    /// The name of the user.
    pub user: String,
    /// The part about channel binding.
    pub(super) header: String,
    /// The rest, which is signed.
    pub(super) bare: String,
    pub(super) nonce: String,
}

impl ClientFirst {
    /// Parses the client's first message.
    pub fn parse(payload: &[u8]) -> Result<ClientFirst, Failure> {
        let text = text(payload)?;
        let (flag, rest) = text.split_once(',').ok_or(Failure::Refused("the client's first message is cut"))?;
        let (authorization, bare) =
            rest.split_once(',').ok_or(Failure::Refused("the client's first message is cut"))?;
        match flag {
            "n" | "y" => {}
            flag if flag.starts_with("p=") => return Err(Failure::Refused("channel binding is not supported")),
            _ => return Err(Failure::Refused("the client's first message is malformed")),
        }
        let mut attributes = bare.split(',');
        let user = attributes.next().and_then(|user| user.strip_prefix("n=")).and_then(decode_name);
        let user = user.ok_or(Failure::Refused("the user's name is malformed"))?;
        let nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r="));
        let nonce = nonce.filter(|nonce| is_nonce(nonce)).ok_or(Failure::Refused("the client's nonce is malformed"))?;
        let as_other = match authorization.strip_prefix("a=") {
            Some(name) => decode_name(name).as_ref() != Some(&user),
            None => !authorization.is_empty(),
        };
        if as_other {
            return Err(Failure::Refused("a user must not act as another one"));
        }
        Ok(ClientFirst {
            nonce: nonce.to_owned(),
            header: format!("{flag},{authorization},"),
            bare: bare.to_owned(),
            user,
        })
    }
}

/// The last message of a client.
pub(super) struct ClientFinal<'a> {
    /// The part that is signed.
    pub without_proof: &'a str,
    pub proof: Vec<u8>,
}

impl ClientFinal<'_> {
    /// Parses the client's last message. `header`: of its first one; `nonce`: of both sides.
    pub fn parse<'a>(payload: &'a [u8], header: &str, nonce: &str) -> Result<ClientFinal<'a>, Failure> {
        let text = text(payload)?;
        let malformed = Failure::Refused("the client's last message is malformed");
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(malformed)?;
        let mut attributes = without_proof.split(',');
        let binding = attributes.next().and_then(|binding| binding.strip_prefix("c=")).ok_or(malformed)?;
        if attributes.next().and_then(|nonce| nonce.strip_prefix("r=")) != Some(nonce) {
            return Err(Failure::Refused("the nonce differs"));
        }
        let binding = STANDARD.decode(binding).map_err(|_| Failure::InvalidBase64)?;
        if binding != header.as_bytes() {
            return Err(Failure::Refused("the header about channel binding differs"));
        }
        if proof.contains(',') {
            return Err(malformed);
        }
        let proof = STANDARD.decode(proof).map_err(|_| Failure::InvalidBase64)?;
        Ok(ClientFinal { without_proof, proof })
    }
}

fn text(payload: &[u8]) -> Result<&str, Failure> {
    if payload.len() > MESSAGE_BYTES_MAX {
        return Err(Failure::Refused("the client's message is too long"));
    }
    std::str::from_utf8(payload).map_err(|_| Failure::Refused("the client's message is not UTF-8"))
}

/// Decodes a name, in which `=2C` is a comma and `=3D` an equals sign.
fn decode_name(encoded: &str) -> Option<String> {
    let mut parts = encoded.split('=');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (character, rest) = match part.strip_prefix("2C") {
            Some(rest) => (',', rest),
            None => ('=', part.strip_prefix("3D")?),
        };
        name.push(character);
        name.push_str(rest);
    }
    (!name.is_empty() && !name.contains('\0')).then_some(name)
}

fn is_nonce(text: &str) -> bool {
    text.len() >= NONCE_BYTES_MIN && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(payload: &str) -> Result<String, Failure> {
        ClientFirst::parse(payload.as_bytes()).map(|first| first.user)
    }

    #[test]
    fn first_messages_are_parsed() {
        for (payload, name) in [
            ("n,,n=user,r=abcd", "user"),
            ("y,,n=user,r=abcd", "user"),
            ("n,a=user,n=user,r=abcd", "user"),
            ("n,a=a=2Cb,n=a=2Cb,r=abcd", "a,b"),
            ("n,,n=a=2Cb=3Dc,r=abcd", "a,b=c"),
            ("n,,n=ä,r=abcd,x=extension", "ä"),
        ] {
            assert_eq!(user(payload).as_deref(), Ok(name), "{payload}");
        }
    }

    #[test]
    fn malformed_first_messages_are_refused() {
        for payload in [
            "",
            "n",
            "n,",
            "n,,",
            "n,,n=u",
            "x,,n=u,r=abcd",
            "p=tls-unique,,n=u,r=abcd",
            "n,a=v,n=u,r=abcd",
            "n,u,n=u,r=abcd",
            "n,,m=x,n=u,r=abcd",
            "n,,n=u,r=",
            "n,,n=u,r=abc",
            "n,,n=u,r=ab\u{7}d",
            "n,,n=,r=abcd",
            "n,,n=u=,r=abcd",
            "n,,n=u=2c,r=abcd",
            "n,,n=u=41,r=abcd",
            "n,,r=abcd,n=u",
            "n,,N=u,r=abcd",
            "n,,n=u\0,r=abcd",
            "n=u,r=abcd",
        ] {
            assert!(user(payload).is_err(), "{payload}");
        }
        assert!(ClientFirst::parse(b"n,,n=\xff,r=abcd").is_err());
        let long = format!("n,,n={},r=abcd", "u".repeat(MESSAGE_BYTES_MAX));
        assert!(user(&long).is_err());
    }
}
