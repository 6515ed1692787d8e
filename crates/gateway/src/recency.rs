//! A table that knows which of its entries was used longest ago.
//!
//! Entries lie side by side and are linked by their numbers, so none is allocated by itself, and none takes much more
//! than its key and its value.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

/// A table by keys that are hashes already.
#[derive(Debug)]
pub(crate) struct Recency<V> {
    /// Where the entry of each key is.
    places: HashTable<u32>,
    entries: Vec<Entry<V>>,
    newest: u32,
    oldest: u32,
    /// An entry that was taken out, and which names the one that was taken out before it as its older one. The next
    /// key gets its place: to fill the gap would be to look for the entry that fills it, and for its neighbours.
    free: u32,
}

#[derive(Debug)]
struct Entry<V> {
    key: u128,
    value: V,
    newer: u32,
    older: u32,
}

/// No entry.
const NONE: u32 = u32::MAX;

impl<V> Default for Recency<V> {
    fn default() -> Self {
        Self { places: HashTable::new(), entries: Vec::new(), newest: NONE, oldest: NONE, free: NONE }
    }
}

impl<V: Default> Recency<V> {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The value of a key, which is used now.
    pub(crate) fn get(&mut self, key: u128) -> Option<&mut V> {
        let place = self.find(key)?;
        Some(self.use_now(place))
    }

    /// The value of a key, which is only looked at.
    pub(crate) fn peek(&self, key: u128) -> Option<&V> {
        let place = self.find(key)?;
        self.entries.get(place as usize).map(|entry| &entry.value)
    }

    /// The value that was used last.
    pub(crate) fn newest(&mut self) -> Option<&mut V> {
        self.entries.get_mut(self.newest as usize).map(|entry| &mut entry.value)
    }

    /// Puts a value in, as the one that was used last; gives back the one that the key had before.
    pub(crate) fn put(&mut self, key: u128, value: V) -> Option<V> {
        let entries = &self.entries;
        let rehash = |place: &u32| entries.get(*place as usize).map_or(0, |entry| hash(entry.key));
        match self.places.entry(hash(key), has_key(entries, key), rehash) {
            Slot::Occupied(known) => {
                let place = *known.get();
                Some(std::mem::replace(self.use_now(place), value))
            }
            Slot::Vacant(vacant) => {
                let entry = Entry { key, value, newer: NONE, older: NONE };
                let place = if let Some(free) = self.entries.get_mut(self.free as usize) {
                    std::mem::replace(&mut self.free, std::mem::replace(free, entry).older)
                } else {
                    self.entries.push(entry);
                    self.entries.len() as u32 - 1
                };
                vacant.insert(place);
                self.link(place);
                None
            }
        }
    }

    /// Takes the value of a key out.
    pub(crate) fn remove(&mut self, key: u128) -> Option<V> {
        self.remove_if(key, |_| true)
    }

    /// Takes the value of a key out, if it is one like this.
    pub(crate) fn remove_if(&mut self, key: u128, is_meant: impl FnOnce(&V) -> bool) -> Option<V> {
        let found = self.places.find_entry(hash(key), has_key(&self.entries, key)).ok()?;
        let place = *found.get();
        self.entries.get(place as usize).filter(|entry| is_meant(&entry.value))?;
        found.remove();
        self.unlink(place);
        let free = std::mem::replace(&mut self.free, place);
        let entry = self.entry(place);
        entry.older = free;
        Some(std::mem::take(&mut entry.value))
    }

    /// Takes out the value that was used longest ago.
    pub(crate) fn pop_oldest(&mut self) -> Option<V> {
        let key = self.entries.get(self.oldest as usize)?.key;
        self.remove(key)
    }

    /// All values, the one that was used last first.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        let entry = |place: u32| self.entries.get(place as usize);
        let all = std::iter::successors(entry(self.newest), move |newer| entry(newer.older));
        all.map(|entry| &entry.value)
    }

    fn find(&self, key: u128) -> Option<u32> {
        self.places.find(hash(key), has_key(&self.entries, key)).copied()
    }

    fn use_now(&mut self, place: u32) -> &mut V {
        if place != self.newest {
            self.unlink(place);
            self.link(place);
        }
        &mut self.entry(place).value
    }

    /// The entry at a place that is known to have one.
    fn entry(&mut self, place: u32) -> &mut Entry<V> {
        &mut self.entries[place as usize]
    }

    fn link(&mut self, place: u32) {
        let older = self.newest;
        let entry = self.entry(place);
        (entry.newer, entry.older) = (NONE, older);
        *self.newer_link(older) = place;
        self.newest = place;
    }

    fn unlink(&mut self, place: u32) {
        let Entry { newer, older, .. } = *self.entry(place);
        *self.older_link(newer) = older;
        *self.newer_link(older) = newer;
    }

    /// What says which entry is the next newer one than this.
    fn newer_link(&mut self, place: u32) -> &mut u32 {
        if place == NONE { &mut self.oldest } else { &mut self.entry(place).newer }
    }

    /// What says which entry is the next older one than this.
    fn older_link(&mut self, place: u32) -> &mut u32 {
        if place == NONE { &mut self.newest } else { &mut self.entry(place).older }
    }
}

/// Whether the entry at a place is that of this key.
fn has_key<V>(entries: &[Entry<V>], key: u128) -> impl Fn(&u32) -> bool {
    move |place| entries.get(*place as usize).is_some_and(|entry| entry.key == key)
}

const fn hash(key: u128) -> u64 {
    (key >> 64) as u64 ^ key as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Recency;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut table = Recency::default();
        for key in 0..4_u128 {
            assert_eq!(table.put(key, key), None);
        }
        assert_eq!(table.get(0), Some(&mut 0));
        assert_eq!(table.peek(1), Some(&1), "looking is no use");
        assert_eq!([table.pop_oldest(), table.pop_oldest()], [Some(1), Some(2)]);
        assert_eq!(table.put(3, 33), Some(3));
        assert_eq!([table.pop_oldest(), table.pop_oldest(), table.pop_oldest()], [Some(0), Some(33), None]);
    }

    #[derive(Debug, Clone)]
    enum Use {
        Put(u128),
        Get(u128),
        Remove(u128),
        Pop,
    }

    proptest! {
        #[test]
        fn it_does_what_a_plain_list_does(
            uses in proptest::collection::vec(
                prop_oneof![
                    (0..20_u128).prop_map(Use::Put),
                    (0..20_u128).prop_map(Use::Get),
                    (0..20_u128).prop_map(Use::Remove),
                    Just(Use::Pop),
                ],
                0..200,
            ),
        ) {
            let mut table = Recency::default();
            let mut list: Vec<(u128, usize)> = Vec::new();
            for (time, one) in uses.into_iter().enumerate() {
                let mut take = |key| list.iter().position(|(known, _)| *known == key).map(|at| list.remove(at));
                match one {
                    Use::Put(key) => {
                        let before = take(key);
                        list.push((key, time));
                        prop_assert_eq!(table.put(key, time), before.map(|(_, value)| value));
                    }
                    Use::Get(key) => {
                        let found = take(key);
                        list.extend(found);
                        prop_assert_eq!(table.get(key).map(|value| *value), found.map(|(_, value)| value));
                    }
                    Use::Remove(key) => {
                        prop_assert_eq!(table.remove(key), take(key).map(|(_, value)| value));
                    }
                    Use::Pop => {
                        let oldest = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(table.pop_oldest(), oldest.map(|(_, value)| value));
                    }
                }
                prop_assert_eq!(table.len(), list.len());
                prop_assert_eq!(table.values().count(), list.len());
            }
        }
    }
}
