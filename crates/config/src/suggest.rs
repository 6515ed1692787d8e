//! "Did you mean": the known name that is closest to what was written.

/// What to write instead of an unknown name: the closest of `known`, else all of them.
pub(crate) fn suggest(written: &str, known: &[&str]) -> String {
    match closest(written, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("accepted here: {}", listed(known)),
    }
}

/// `a`, `b`, `c` in backticks.
pub(crate) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The name that differs in at most a third of its letters, or that is a longer or shorter form.
fn closest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    // Nobody mistypes a name of this length, and the distance costs the product of both lengths.
    if written.len() > 40 {
        return None;
    }
    let written = written.to_lowercase().replace(['-', ' '], "_");
    let near = |name: &&'k str| {
        let distance = strsim::osa_distance(&written, name);
        let letters = written.chars().count().max(name.len());
        (distance <= (letters / 3).max(1)).then_some((distance, *name))
    };
    let spelling = known.iter().filter_map(near).min_by_key(|(distance, _)| *distance);
    let form =
        |name: &&&str| written.len() >= 3 && (name.starts_with(&written) || written.starts_with(**name));
    spelling.map(|(_, name)| name).or_else(|| known.iter().find(form).copied())
}

#[cfg(test)]
mod tests {
    use super::suggest;

    const KEYS: &[&str] = &["threshold", "window_size", "reason"];

    #[test]
    fn a_typing_mistake_names_the_key_that_was_meant() {
        for (written, meant) in
            [("treshold", "threshold"), ("windowSize", "window_size"), ("Reason", "reason")]
        {
            assert_eq!(suggest(written, KEYS), format!("did you mean `{meant}`?"));
        }
    }

    #[test]
    fn a_shorter_form_names_the_whole_key() {
        assert_eq!(suggest("window", KEYS), "did you mean `window_size`?");
    }

    #[test]
    fn a_name_that_is_near_to_nothing_lists_what_is_accepted() {
        assert_eq!(suggest("colour", KEYS), "accepted here: `threshold`, `window_size`, `reason`");
    }

    #[test]
    fn a_one_letter_key_is_not_near_to_a_long_one() {
        assert!(suggest("x", KEYS).starts_with("accepted here"));
    }
}
