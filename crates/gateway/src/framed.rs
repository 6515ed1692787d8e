//! Fields that make up one key: each stands behind its length, so that no two lists of fields look alike.

use twox_hash::XxHash3_128;

/// Fields that are hashed together.
pub(crate) struct Framed(Vec<u8>);

impl Framed {
    /// The key of a tenant's own: who does not know the tenant's key, a keyed hash, cannot make an equal one.
    pub(crate) fn of(tenant: u128) -> Self {
        let mut fields = Vec::with_capacity(256);
        fields.extend_from_slice(&tenant.to_le_bytes());
        Self(fields)
    }

    pub(crate) fn add(&mut self, field: &[u8]) {
        self.0.extend_from_slice(&(field.len() as u64).to_le_bytes());
        self.0.extend_from_slice(field);
    }

    pub(crate) fn hash(&self) -> u128 {
        XxHash3_128::oneshot(&self.0)
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
        let all = [
            hash(1, &["ab", "c"]),
            hash(1, &["a", "bc"]),
            hash(1, &["abc"]),
            hash(1, &["ab", "c", ""]),
            hash(2, &["ab", "c"]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{index}");
        }
    }
}
