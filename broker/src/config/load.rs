//! Defaults < file < flags to a `NodeConfig`, with every mistake reported at once.

use std::collections::BTreeMap;
use std::path::Path;

use super::check;
use super::entry::Entry;
use super::kafka_only::{self, Verdict};
use super::mistake::{Mistake, Mistakes, Place};
use super::setting::{Setting, find};
use super::table::{NodeConfig, SETTINGS};
use super::value::Wrong;
use super::{properties, toml_file};

/// A configuration that holds together.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The values.
    pub config: NodeConfig,
    /// What an operator should know although it is no mistake, such as settings without effect.
    pub warnings: Vec<Mistake>,
}

/// Reads the file (TOML, or Kafka's format when its name ends in `.properties`) and then the flags.
pub fn load(file: Option<&Path>, flags: Vec<Entry>) -> Result<Loaded, Mistakes> {
    let Some(path) = file else {
        return load_text("", "", flags);
    };
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => load_text(&name, &text, flags),
        Err(error) => Err(Mistakes(vec![Mistake {
            place: Place::Flag { flag: "--config".to_owned() },
            key: None,
            what: format!("{name} cannot be read: {error}"),
            cure: "name a readable UTF-8 file".to_owned(),
        }])),
    }
}

/// As [`load`], from text that is already in memory; the file's name chooses the format.
pub fn load_text(file: &str, text: &str, flags: Vec<Entry>) -> Result<Loaded, Mistakes> {
    let is_properties = Path::new(file).extension().is_some_and(|e| e == "properties");
    let read = if is_properties { properties::read } else { toml_file::read };
    let (entries, mistakes) = read(file, text);
    let mut state =
        State { config: NodeConfig::default(), places: BTreeMap::new(), mistakes, warnings: vec![] };
    let entries = if is_properties { kafka_only::without_controller_listeners(entries) } else { entries };
    state.apply_all(entries);
    state.apply_all(flags);
    state.finish()
}

struct State {
    config: NodeConfig,
    /// Where each setting was given last, by its key.
    places: BTreeMap<&'static str, Place>,
    mistakes: Vec<Mistake>,
    warnings: Vec<Mistake>,
}

impl State {
    /// Applies the entries of one source; the same setting twice in one source is a mistake.
    fn apply_all(&mut self, entries: Vec<Entry>) {
        let mut here: BTreeMap<&'static str, Place> = BTreeMap::new();
        for entry in entries {
            let Some(setting) = find(&entry.key) else {
                self.unknown(entry);
                continue;
            };
            if let Some(first) = here.get(setting.spec.key) {
                self.mistakes.push(Mistake {
                    what: format!("it is set twice, first at {first}"),
                    cure: "keep one of the two".to_owned(),
                    key: Some(entry.key),
                    place: entry.place,
                });
                continue;
            }
            here.insert(setting.spec.key, entry.place.clone());
            self.apply(setting, entry);
        }
        self.places.extend(here);
    }

    fn apply(&mut self, setting: &'static Setting, entry: Entry) {
        if let Err(wrong) = (setting.set)(&mut self.config, &entry.raw, &setting.spec) {
            let Entry { key, place, .. } = entry;
            self.mistakes.push(Mistake { place, key: Some(key), what: wrong.what, cure: wrong.cure });
        }
    }

    fn unknown(&mut self, entry: Entry) {
        let Entry { key, place, .. } = entry;
        match kafka_only::verdict(&key) {
            Some(Verdict::Ignored(why)) => self.warnings.push(Mistake {
                place,
                key: Some(key),
                what: format!("it has no effect in Millrace: {why}"),
                cure: "it may stay or go".to_owned(),
            }),
            Some(Verdict::Refused(why)) => {
                let cure = "take it out only if you can do without it".to_owned();
                self.mistakes.push(Mistake { place, key: Some(key), what: why.to_owned(), cure });
            }
            None => {
                let cure = match nearest(&key) {
                    Some(near) => format!("did you mean {near}?"),
                    None => "see `millrace serve --help-config` for every setting".to_owned(),
                };
                let what = "no setting has this name".to_owned();
                self.mistakes.push(Mistake { place, key: Some(key), what, cure });
            }
        }
    }

    fn finish(mut self) -> Result<Loaded, Mistakes> {
        let place_of = |key: &str| self.places.get(key).cloned();
        for conflict in check::conflicts(&self.config, &|key| self.places.contains_key(key)) {
            let place = conflict.keys.iter().find_map(|key| place_of(key)).unwrap_or(Place::Nowhere {});
            let key = conflict.keys.iter().find(|key| self.places.contains_key(**key));
            let key = key.or(conflict.keys.first()).map(|key| (*key).to_owned());
            let Wrong { what, cure } = conflict.wrong;
            let list = if conflict.is_fatal { &mut self.mistakes } else { &mut self.warnings };
            list.push(Mistake { place, key, what, cure });
        }
        if self.mistakes.is_empty() {
            return Ok(Loaded { config: self.config, warnings: self.warnings });
        }
        self.mistakes.sort_by(|a, b| a.place.cmp(&b.place));
        Err(Mistakes(self.mistakes))
    }
}

/// The known name that was probably meant.
fn nearest(key: &str) -> Option<&'static str> {
    let by_topic_name = SETTINGS.iter().find(|s| s.spec.topic_key == Some(key)).map(|s| s.spec.key);
    let dotted = key.replace(['_', '-'], ".").to_ascii_lowercase();
    let names = SETTINGS.iter().flat_map(|s| [Some(s.spec.key), s.spec.alias]).flatten();
    let close = || {
        let (distance, name) = names.map(|name| (edit_distance(&dotted, name), name)).min()?;
        (distance <= 2.max(dotted.len() / 4)).then_some(name)
    };
    by_topic_name.or_else(close)
}

/// Levenshtein's distance in bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let best = (*cell + 1).min(left + 1).min(diagonal + usize::from(x != y));
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
    }
    row.last().copied().unwrap_or(0)
}
