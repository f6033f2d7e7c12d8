//! Logs of a serving node, to standard error: text, or one JSON object a line.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::exit::{Exit, Failure};
use crate::output::Format;

/// Starts logging. `filter` is a level such as `info`, or directives such as `info,millrace_storage=debug`.
pub(crate) fn start(filter: &str, format: Format) -> Result<(), Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        let cure = "write a level (error, warn, info, debug, trace) or directives such as info,millrace_storage=debug";
        Failure::new(Exit::Usage, format!("--log-level {filter:?}: {error}"), cure)
    };
    let filter = EnvFilter::builder().parse(filter).map_err(|e| wrong(&e))?;
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_thread_names(true);
    let started = match format {
        Format::Json => builder.json().flatten_event(true).try_init(),
        Format::Text => builder.with_target(false).with_ansi(false).try_init(),
    };
    started.map_err(|e| wrong(&e))
}
