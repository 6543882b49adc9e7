//! A user.

use super::catalog::Catalog;
use super::selector::Selector;

/// The user of clients that name none.
pub(crate) const DEFAULT: &[u8] = b"default";

/// A password's SHA-256, in hexadecimal digits.
pub(crate) type Hash = [u8; 64];

/// Who a client is, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub name: Vec<u8>,
    pub on: bool,
    /// Any password will do.
    pub nopass: bool,
    /// Shown as `sanitize-payload` or `skip-sanitize-payload`; of no effect here.
    pub sanitize: Option<bool>,
    pub passwords: Vec<Hash>,
    pub base: Selector,
    pub further: Vec<Selector>,
}

impl User {
    /// One that may nothing.
    pub fn new(name: &[u8]) -> Self {
        Self {
            name: name.to_vec(),
            on: false,
            nopass: false,
            sanitize: None,
            passwords: Vec::new(),
            base: Selector::default(),
            further: Vec::new(),
        }
    }

    /// The default user, who may everything, of a server with this password.
    pub fn first(catalog: &Catalog, password: Option<&str>) -> Self {
        Self {
            on: true,
            nopass: password.is_none(),
            passwords: password.iter().map(|word| hash(word.as_bytes())).collect(),
            base: Selector::open(catalog),
            ..Self::new(DEFAULT)
        }
    }

    /// Whether it may do everything.
    pub fn is_open(&self) -> bool {
        self.base.is_open()
    }

    /// Whether somebody who says this is the user.
    pub fn admits(&self, password: &[u8]) -> bool {
        let given = hash(password);
        // All are compared, each in a time that does not depend on where they differ.
        let known = self
            .passwords
            .iter()
            .fold(false, |known, have| known | same(have, &given));
        self.on && (self.nopass || known)
    }

    /// Whether it may subscribe to a channel, or a pattern of channels.
    pub fn hears(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors()
            .any(|selector| selector.reaches_channel(channel, is_pattern))
    }

    pub fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.base).chain(&self.further)
    }
}

fn same(a: &Hash, b: &Hash) -> bool {
    a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// The SHA-256 of `bytes`.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let mut text = [b'0'; 64];
    for (pair, byte) in text.chunks_mut(2).zip(digest.as_ref()) {
        let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    text
}
