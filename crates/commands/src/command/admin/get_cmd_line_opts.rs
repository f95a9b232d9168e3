//! `getCmdLineOpts`.

use crate::call::Call;
use document::DocWriter;
use error::Result;

pub fn get_cmd_line_opts(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let settings = &call.worker.server.settings;
    {
        let mut argv = reply.array("argv");
        settings.argv.iter().for_each(|argument| argv.push(argument));
    }
    reply.append("parsed", &settings.parsed);
    Ok(())
}
