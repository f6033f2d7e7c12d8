//! Configuration of a node: one table of settings, and everything that is made of it.
//!
//! | module | owns |
//! |---|---|
//! | `table` | the settings: field, Kafka's name, type, default, bounds, documentation, example |
//! | `setting` | what a setting is, and the macro that turns the table into `NodeConfig` and `SETTINGS` |
//! | `value` | text, TOML values and units to typed values, and back to Kafka's text |
//! | `types` | listeners and the named choices |
//! | `entry`, `toml_file`, `properties` | where values come from: files and flags, each with its place |
//! | `load` | defaults < file < flags; all mistakes at once |
//! | `check` | settings that contradict each other |
//! | `topic` | topic-level names over the same table |
//! | `kafka_only` | names that Apache Kafka has and Millrace ignores or refuses |
//! | `mistake` | what an operator reads when something is wrong |
//! | `reference` | `docs/configuration.md` |

mod check;
mod entry;
mod kafka_only;
mod load;
mod mistake;
mod properties;
mod reference;
mod setting;
mod table;
#[cfg(test)]
mod tests;
mod toml_file;
mod topic;
mod types;
mod value;

pub use entry::{Entry, Raw};
pub use load::{Loaded, load, load_text};
pub use mistake::{Mistake, Mistakes, Place};
pub use reference::{one_setting, reference_markdown};
pub use setting::{Kind, Setting, Unit, find};
pub use table::{NodeConfig, SETTINGS};
pub use topic::topic_settings;
pub use types::{CleanupPolicy, CompressionType, HttpListener, Listener, Protocol, TimestampType};
