//! `saslStart`, `saslContinue`, `authenticate`: the login.

use crate::call::{Call, Disposition};
use crate::login::arguments::{Authenticate, Continue, Start};
use crate::login::{attempt, sasl, x509};
use document::DocWriter;
use error::Result;

/// Parses the fields of a `saslStart`.
pub fn parse_start(call: &Call<'_>) -> Result<()> {
    Start::parse(call.fields(), false).map(drop)
}

pub async fn sasl_start(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let start = attempt::read(call, call.fields(), call.database(), Start::parse(call.fields(), false))?;
    sasl::start(call, &start, call.database()).await?.write(reply);
    Ok(Disposition::Reply)
}

/// Parses the fields of a `saslContinue`.
pub fn parse_continue(call: &Call<'_>) -> Result<()> {
    Continue::parse(call.fields()).map(drop)
}

pub async fn sasl_continue(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let next = match call.session.has_conversation() {
        // The conversation goes on.
        true => Continue::parse(call.fields())?,
        false => attempt::read(call, call.fields(), call.database(), Continue::parse(call.fields()))?,
    };
    sasl::proceed(call, &next).await?.write(reply);
    Ok(Disposition::Reply)
}

/// Parses the fields of an `authenticate`.
pub fn parse_authenticate(call: &Call<'_>) -> Result<()> {
    Authenticate::parse(call.fields(), false).map(drop)
}

pub async fn authenticate(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let parsed = Authenticate::parse(call.fields(), false);
    let arguments = attempt::read(call, call.fields(), call.database(), parsed)?;
    x509::authenticate(call, &arguments).await?.write(reply);
    Ok(Disposition::Reply)
}
