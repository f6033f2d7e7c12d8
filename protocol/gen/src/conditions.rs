//! Version ranges as Rust conditions on `version`, no longer than what the enclosing range leaves open.

use crate::versions::Versions;

/// Whether `version`, known to lie in one range, lies in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It always does.
    Always,
    /// It never does.
    Never,
    /// It does when this expression holds.
    When {
        /// The expression.
        holds: String,
        /// Its negation.
        fails: String,
    },
}

impl Condition {
    /// The condition that a version of `all` is in `range`.
    pub(crate) fn new(range: Versions, all: Versions) -> Self {
        let both = range.and(all);
        let when = |holds: String, fails: String| Self::When { holds, fails };
        let Versions { min, max } = both;
        match (min > all.min, max < all.max) {
            _ if both.is_empty() => Self::Never,
            (false, false) => Self::Always,
            _ if min == max => when(format!("version == {min}"), format!("version != {min}")),
            (true, false) => when(format!("version >= {min}"), format!("version < {min}")),
            (false, true) => when(format!("version <= {max}"), format!("version > {max}")),
            (true, true) => when(
                format!("({min}..={max}).contains(&version)"),
                format!("!({min}..={max}).contains(&version)"),
            ),
        }
    }
}

/// A statement or expression `yes` where the condition holds, else `no` (which may be empty for a statement).
pub(crate) fn choose(condition: &Condition, yes: &str, no: &str) -> String {
    match condition {
        Condition::Always => yes.to_owned(),
        Condition::Never => no.to_owned(),
        Condition::When { holds, .. } if no.is_empty() => format!("if {holds} {{ {yes} }}"),
        Condition::When { fails, .. } if yes.is_empty() => format!("if {fails} {{ {no} }}"),
        Condition::When { holds, .. } => format!("if {holds} {{ {yes} }} else {{ {no} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(range: &str, all: &str) -> String {
        let parse = |text| Versions::parse(text).expect("versions");
        match Condition::new(parse(range), parse(all)) {
            Condition::Always => "true".to_owned(),
            Condition::Never => "false".to_owned(),
            Condition::When { holds, .. } => holds,
        }
    }

    #[test]
    fn conditions_say_only_what_is_open() {
        assert_eq!(expression("3+", "3-7"), "true");
        assert_eq!(expression("0-2", "3-7"), "false");
        assert_eq!(expression("5+", "3-7"), "version >= 5");
        assert_eq!(expression("0-5", "3-7"), "version <= 5");
        assert_eq!(expression("7+", "3-7"), "version == 7");
        assert_eq!(expression("4-6", "3-7"), "(4..=6).contains(&version)");
    }
}
