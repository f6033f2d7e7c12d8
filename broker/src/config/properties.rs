//! Kafka's `server.properties` to entries: the part of Java's properties format that such files use
//! (`key=value` or `key: value`, comments with `#` and `!`, continuation by a backslash at the end of a line).

use super::entry::{Entry, Raw};
use super::mistake::{Mistake, Place};

/// Every `key=value` of the text, and the lines that are none.
pub(super) fn read(file: &str, text: &str) -> (Vec<Entry>, Vec<Mistake>) {
    let (mut entries, mut mistakes) = (Vec::new(), Vec::new());
    let mut lines = text.lines().zip(1u32..);
    while let Some((first, line)) = lines.next() {
        let mut logical = first.trim().to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while logical.ends_with('\\') {
            logical.pop();
            let Some((next, _)) = lines.next() else { break };
            logical.push_str(next.trim());
        }
        let place = Place::File { file: file.to_owned(), line };
        match logical.split_once(['=', ':']) {
            Some((key, value)) if !key.trim().is_empty() => {
                let raw = Raw::Text(value.trim().replace("\\:", ":").replace("\\=", "="));
                entries.push(Entry { key: key.trim().to_owned(), raw, place });
            }
            // The line is not quoted back: it may hold a secret.
            _ => mistakes.push(Mistake {
                place,
                key: None,
                what: "this line is no key=value".to_owned(),
                cure: "write key=value, or # before a comment".to_owned(),
            }),
        }
    }
    (entries, mistakes)
}
