//! From flags to the entries that the configuration is loaded with.

use broker::config::Entry;

use crate::exit::{Exit, Failure};

/// The entries of `--set KEY=VALUE`. The text is not quoted back: it may hold a secret.
pub(crate) fn set_flags(flags: &[String]) -> Result<Vec<Entry>, Failure> {
    let entry = |flag: &String| match flag.split_once('=') {
        Some((key, value)) => Ok(Entry::flag("--set", key.trim(), value.trim())),
        None => Err(Failure::new(
            Exit::Usage,
            "--set takes KEY=VALUE, and there is no =",
            "write for example --set num.partitions=6",
        )),
    };
    flags.iter().map(entry).collect()
}
