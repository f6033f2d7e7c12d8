//! Rules for topic names, as Kafka has them. Pure.

/// The longest name: it must fit a directory name together with `-` and a partition number.
pub const NAME_LEN_MAX: usize = 249;
/// Offsets and members of consumer groups.
pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";
/// The metadata log, which no client may see or create.
pub const CLUSTER_METADATA: &str = "__cluster_metadata";
/// State of transactions; reserved, since Kafka treats it as internal.
pub const TRANSACTION_STATE: &str = "__transaction_state";
/// State of share groups; reserved, since Kafka treats it as internal.
pub const SHARE_GROUP_STATE: &str = "__share_group_state";

/// Whether clients see the topic marked as internal.
#[must_use]
pub fn is_internal(name: &str) -> bool {
    matches!(name, CONSUMER_OFFSETS | TRANSACTION_STATE | SHARE_GROUP_STATE)
}

/// Checks a name; the error says what is wrong with it.
pub fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("Topic name is invalid: it must not be empty".to_owned());
    }
    if name == "." || name == ".." {
        return Err(format!("Topic name is invalid: it must not be \"{name}\""));
    }
    if name.len() > NAME_LEN_MAX {
        return Err(format!("Topic name is invalid: it is longer than {NAME_LEN_MAX} characters"));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return Err(format!(
            "Topic name is invalid: {name:?} has characters other than ASCII letters, digits, '.', '_' and '-'"
        ));
    }
    Ok(())
}

/// Names that differ only in `.` and `_` collide in metric names, so Kafka allows only one of them.
#[must_use]
pub fn collide(a: &str, b: &str) -> bool {
    let same = |x: u8, y: u8| x == y || (b"._".contains(&x) && b"._".contains(&y));
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(x, y)| same(x, y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kafka() {
        for good in ["a", "A-1", "x.y_z", &"n".repeat(NAME_LEN_MAX)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", "a b", "../x", "ä", "a/b", &"n".repeat(NAME_LEN_MAX + 1)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dot_and_underscore_collide() {
        assert!(collide("a.b", "a_b"));
        assert!(collide("a.b", "a.b"));
        assert!(!collide("a.b", "a-b"));
        assert!(!collide("a.b", "a.bc"));
    }
}
