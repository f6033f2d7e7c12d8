//! Kafka's CamelCase names as Rust names.

/// `TopicId` → `topic_id`, `ISR` → `isr`, `ApiKeyURL` → `api_key_url`.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let after = letters.get(at + 1);
        let word_begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(|after| after.is_ascii_lowercase())
            });
        if word_begins {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// The name of a field: snake case, raw where Rust has a keyword of that name.
pub(crate) fn field(name: &str) -> String {
    let snake = snake(name);
    match snake.as_str() {
        "type" | "match" | "ref" | "move" | "use" | "where" | "in" | "as" | "loop" | "impl" | "enum" => {
            format!("r#{snake}")
        }
        _ => snake,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_keeps_abbreviations_together() {
        for (camel, expected) in [
            ("TopicId", "topic_id"),
            ("ISR", "isr"),
            ("ApiKeyURL", "api_key_url"),
            ("KRaftVersionFeature", "k_raft_version_feature"),
            ("IsKRaftMigration", "is_k_raft_migration"),
            ("ip", "ip"),
        ] {
            assert_eq!(snake(camel), expected);
        }
        assert_eq!(field("Type"), "r#type");
    }
}
