//! What a frozen workflow was made of, so that who goes on with a run can tell without making it again whether it would
//! be made the same today.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use serde::{Deserialize, Serialize};

use super::{LoadOptions, Sources};

/// Everything that was read or looked for in vain, and what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeOf {
    /// Digest of the definition's own text, the options, the configuration and the version of this program.
    asked: String,
    seen: Seen,
}

/// What one workflow was shown of its surroundings. `None`: there was no such thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, Option<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    workflows: BTreeMap<String, Option<(String, Seen)>>,
}

impl MadeOf {
    /// Whether making it now would read the same texts with the same options.
    pub fn is_unchanged(
        &self,
        name: &str,
        text: &str,
        sources: &dyn Sources,
        options: &LoadOptions<'_>,
    ) -> bool {
        self.asked == asked(name, text, options) && self.seen.is_unchanged(sources)
    }
}

impl Seen {
    fn is_unchanged(&self, sources: &dyn Sources) -> bool {
        let same_files = self.files.iter().all(|(path, known)| digest_of(sources.read(path)) == *known);
        same_files
            && self.workflows.iter().all(|(name, known)| match (known, sources.workflow(name)) {
                (None, None) => true,
                (Some((digest, beside)), Some((label, text, now))) => {
                    *digest == of_workflow(&label, &text) && beside.is_unchanged(now.as_ref())
                }
                (None, Some(_)) | (Some(_), None) => false,
            })
    }
}

fn digest_of(text: Option<String>) -> Option<String> {
    text.map(|text| blake3::hash(text.as_bytes()).to_hex().to_string())
}

fn of_workflow(label: &str, text: &str) -> String {
    blake3::hash(format!("{label}\0{text}").as_bytes()).to_hex().to_string()
}

fn asked(name: &str, text: &str, options: &LoadOptions<'_>) -> String {
    let LoadOptions { profile, settings, agent, config } = options;
    let asked =
        format!("{}\0{name}\0{text}\0{profile:?}{settings:?}{agent:?}{config:?}", env!("CARGO_PKG_VERSION"));
    blake3::hash(asked.as_bytes()).to_hex().to_string()
}

/// Sources that remember what was asked of them.
pub struct Remembering<'s> {
    inner: Inner<'s>,
    memory: Rc<RefCell<Memory>>,
}

enum Inner<'s> {
    Lent(&'s dyn Sources),
    Own(Box<dyn Sources>),
}

#[derive(Default)]
struct Memory {
    files: BTreeMap<String, Option<String>>,
    workflows: BTreeMap<String, Option<Inside>>,
}

/// A workflow inside another: its digest, and what it was shown.
type Inside = (String, Rc<RefCell<Memory>>);

impl Memory {
    fn seen(&self) -> Seen {
        let inside = |known: &Option<Inside>| {
            known.as_ref().map(|(digest, beside)| (digest.clone(), beside.borrow().seen()))
        };
        Seen {
            files: self.files.clone(),
            workflows: self.workflows.iter().map(|(name, known)| (name.clone(), inside(known))).collect(),
        }
    }
}

impl<'s> Remembering<'s> {
    pub fn new(sources: &'s dyn Sources) -> Self {
        Remembering { inner: Inner::Lent(sources), memory: Rc::default() }
    }

    pub fn made_of(&self, name: &str, text: &str, options: &LoadOptions<'_>) -> MadeOf {
        MadeOf { asked: asked(name, text, options), seen: self.memory.borrow().seen() }
    }

    fn sources(&self) -> &dyn Sources {
        match &self.inner {
            Inner::Lent(sources) => *sources,
            Inner::Own(sources) => sources.as_ref(),
        }
    }
}

impl Sources for Remembering<'_> {
    fn read(&self, path: &str) -> Option<String> {
        let found = self.sources().read(path);
        self.memory.borrow_mut().files.insert(path.to_owned(), digest_of(found.clone()));
        found
    }

    /// Only for suggestions: nothing is made of it.
    fn list(&self, dir: &str) -> Vec<String> {
        self.sources().list(dir)
    }

    fn workflow(&self, name: &str) -> Option<(String, String, Box<dyn Sources>)> {
        let found = self.sources().workflow(name);
        let mut memory = self.memory.borrow_mut();
        let Some((label, text, beside)) = found else {
            memory.workflows.insert(name.to_owned(), None);
            return None;
        };
        let digest = of_workflow(&label, &text);
        let known = memory.workflows.entry(name.to_owned()).or_default();
        let (_, inside) = known.get_or_insert_with(|| (digest, Rc::default()));
        let beside = Remembering { inner: Inner::Own(beside), memory: inside.clone() };
        Some((label, text, Box::new(beside)))
    }
}
