//! A map of a few entries. A tree has room for eleven in its first node, and there are ten thousand steps.

use std::fmt;

use serde::{Serialize, Serializer};

/// In the order of its keys, like a tree.
#[derive(Clone, PartialEq, Eq)]
pub struct Few<K, V>(Vec<(K, V)>);

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Few(Vec::new())
    }
}

impl<K: Ord, V> Few<K, V> {
    pub fn get(&self, key: &K) -> Option<&V> {
        let at = self.0.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub fn insert(&mut self, key: K, value: V) {
        match self.0.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (key, value));
            }
        }
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Serialize, V: Serialize> Serialize for Few<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Few<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (key, value))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn a_few_entries_are_kept_as_in_a_tree() {
        let mut few = Few::default();
        for (key, value) in [(3, "c"), (1, "a"), (2, "b"), (1, "z")] {
            few.insert(key, value);
        }
        assert_eq!(format!("{few:?}"), r#"{1: "z", 2: "b", 3: "c"}"#);
        assert_eq!((few.get(&2), few.get(&4), few.contains_key(&3)), (Some(&"b"), None, true));
        few.clear();
        assert_eq!(few, Few::default());
    }
}
