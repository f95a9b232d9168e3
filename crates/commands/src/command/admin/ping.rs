//! `ping`.

use crate::call::Call;
use document::DocWriter;
use error::Result;

pub fn ping(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Ok(())
}
