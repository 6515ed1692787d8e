//! What a client can decompress.

/// Whether an `accept-encoding` allows this encoding: named, or covered by a star, and not with a weight of zero.
pub(crate) fn accepts(header: &str, encoding: &str) -> bool {
    let mut by_star = false;
    for part in header.split(',') {
        let (name, parameters) = part.split_once(';').unwrap_or((part, ""));
        let weight = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
        let allowed =
            weight.is_none_or(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0));
        match name.trim() {
            name if name.eq_ignore_ascii_case(encoding) => return allowed,
            "*" => by_star = allowed,
            _ => {}
        }
    }
    by_star
}

#[cfg(test)]
mod tests {
    use super::accepts;

    #[test]
    fn an_encoding_counts_when_it_is_named_with_a_weight() {
        for (header, expected) in [
            ("gzip, deflate, br", true),
            ("BR", true),
            ("br;q=0.1", true),
            ("br;q=0, *", false),
            ("br; q=0.000", false),
            ("*", true),
            ("*;q=0", false),
            ("gzip", false),
            ("brotli", false),
            ("br;q=nonsense", false),
            ("", false),
        ] {
            assert_eq!(accepts(header, "br"), expected, "{header}");
        }
    }
}
