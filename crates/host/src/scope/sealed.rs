//! Files beside an attempt that carry the user's seal: whoever else writes them is found out.

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{run_context::RunContext, user_key::RunKey};

#[derive(Serialize, Deserialize)]
struct Sealed {
    text: String,
    seal: Option<String>,
}

pub(super) fn write_sealed(context: &RunContext, path: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    let place = path.to_string_lossy().into_owned();
    let seal = context.key.as_ref().map(|key| key.seal("scope", &[place.as_bytes(), text.as_bytes()]));
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, serde_json::to_vec(&Sealed { text, seal })?)?;
    fs::rename(&temporary, path)
}

pub(super) fn read_sealed<T: DeserializeOwned>(context: &RunContext, path: &Path) -> Result<T, String> {
    read_sealed_with(context.key.as_ref(), path)
}

pub(super) fn read_sealed_with<T: DeserializeOwned>(key: Option<&RunKey>, path: &Path) -> Result<T, String> {
    let changed = || format!("{}: was changed by somebody else", path.display());
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let sealed: Sealed = serde_json::from_slice(&bytes).map_err(|_| changed())?;
    if let Some(key) = key {
        let place = path.to_string_lossy().into_owned();
        let seal = sealed.seal.as_deref().unwrap_or_default();
        if !key.holds("scope", &[place.as_bytes(), sealed.text.as_bytes()], seal) {
            return Err(changed());
        }
    }
    serde_json::from_str(&sealed.text).map_err(|_| changed())
}
