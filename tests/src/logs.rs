//! Judges the log of a node: a warning, an error or a panic that the test did not provoke is a failure.

/// Lines of `log` that no test expects: WARN and ERROR events and whatever a panic prints, less those that contain one
/// of `allowed`.
pub fn unexpected(log: &str, allowed: &[&str]) -> Vec<String> {
    log.lines()
        .filter(|line| is_bad(line) && !allowed.iter().any(|text| line.contains(text)))
        .map(str::to_owned)
        .collect()
}

fn is_bad(line: &str) -> bool {
    const LEVELS: [&str; 4] = [" WARN ", " ERROR ", "\"level\":\"WARN\"", "\"level\":\"ERROR\""];
    const PANICS: [&str; 3] = ["panicked at", "stack overflow", "memory allocation of"];
    let plain = without_colour(line);
    LEVELS.iter().any(|level| plain.contains(level)) || PANICS.iter().any(|sign| plain.contains(sign))
}

/// The line without terminal escapes, which stand between a level and the spaces around it.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut escape = false;
    for character in line.chars() {
        match character {
            '\u{1b}' => escape = true,
            'm' if escape => escape = false,
            _ if escape => {}
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::unexpected;

    #[test]
    fn levels_and_panics_are_found_in_both_formats() {
        let log = "2026-01-01T00:00:00Z  INFO broker: started\n\
                   2026-01-01T00:00:00Z  WARN broker: odd\n\
                   {\"timestamp\":\"x\",\"level\":\"ERROR\",\"message\":\"bad\"}\n\
                   \u{1b}[2m2026\u{1b}[0m \u{1b}[33m WARN\u{1b}[0m \u{1b}[2mbroker\u{1b}[0m: coloured\n\
                   thread 'shard-0' panicked at broker/src/lib.rs:1:1:\n";
        assert_eq!(unexpected(log, &[]).len(), 4);
    }

    #[test]
    fn allowed_lines_are_no_failure() {
        let log = "x WARN broker: disk is full\nx WARN broker: other\n";
        assert_eq!(unexpected(log, &["disk is full"]), ["x WARN broker: other"]);
    }
}
