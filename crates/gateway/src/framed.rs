//! Fields that make up one key: each stands behind its length, so that no two lists of fields look alike.

use twox_hash::XxHash3_128;

/// Fields that are hashed together.
pub(crate) struct Framed {
    /// All of them, as long as there is room.
    few: [u8; 256],
    len: usize,
    /// All of them, once there is none.
    many: Vec<u8>,
}

impl Framed {
    /// The key of a tenant's own: who does not know the tenant's key, a keyed hash, cannot make an equal one.
    pub(crate) fn of(tenant: u128) -> Self {
        let mut fields = Self { few: [0; 256], len: 0, many: Vec::new() };
        fields.push(&tenant.to_le_bytes());
        fields
    }

    pub(crate) fn add(&mut self, field: &[u8]) {
        self.push(&(field.len() as u64).to_le_bytes());
        self.push(field);
    }

    pub(crate) fn hash(&self) -> u128 {
        XxHash3_128::oneshot(if self.many.is_empty() { &self.few[..self.len] } else { &self.many })
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if !self.many.is_empty() {
            self.many.extend_from_slice(bytes);
        } else if let Some(room) = self.few.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
            self.len = end;
        } else {
            self.many = [&self.few[..self.len], bytes].concat();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Framed;

    #[test]
    fn neither_where_a_field_ends_nor_whose_it_is_can_be_mistaken() {
        let hash = |tenant, fields: &[&str]| {
            let mut framed = Framed::of(tenant);
            for field in fields {
                framed.add(field.as_bytes());
            }
            framed.hash()
        };
        let long = "x".repeat(300);
        let all = [
            hash(1, &["ab", "c"]),
            hash(1, &["a", "bc"]),
            hash(1, &["abc"]),
            hash(1, &["ab", "c", ""]),
            hash(2, &["ab", "c"]),
            hash(1, &["ab", &long]),
            hash(1, &["ab", &long, ""]),
            hash(1, &["ab", &long[1..], "x"]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{index}");
        }
    }
}
