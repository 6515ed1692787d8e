//! Names of HTTP headers.

/// The name in lower case, as it is compared; `None` when no header can be called so.
pub(crate) fn parse(text: &str) -> Option<String> {
    is_token(text).then(|| text.to_ascii_lowercase())
}

/// Whether a text is a token of HTTP: the form of header names and methods.
pub(crate) fn is_token(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= 256 && text.bytes().all(plain)
}
