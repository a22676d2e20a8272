//! Where programs must be able to write outside the repository: agents' own folders, which their adapters list, and
//! toolchains' caches. It must not know which agent an attempt runs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Caches of toolchains below the home directory: the parts that are filled by building, not the parts that
/// hold programs or settings. Each counts if its tool was used before.
const CACHES: [(&str, &[&str]); 14] = [
    ("", &[".cache"]),
    (".cargo", &["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"]),
    (".npm", &["_cacache", "_logs", "_npx", "_update-notifier-last-checked"]),
    (".bun", &["install/cache"]),
    (".yarn", &["berry/cache"]),
    (".local/share/pnpm", &["store"]),
    ("go", &["pkg"]),
    (".gradle", &["caches", "daemon", "native", "wrapper", "notifications"]),
    (".m2", &["repository"]),
    (".ivy2", &["cache", "local"]),
    (".nuget", &["packages"]),
    (".local/share/NuGet", &["http-cache", "v3-cache"]),
    (".cabal", &["packages", "store"]),
    (".hex", &["packages"]),
];

/// The places of an agent, which are below the home directory if they are not absolute. Missing folders are made.
pub fn agent_places(folders: &[&str], files: &[&str], home: &Path) -> Vec<PathBuf> {
    let folders = folders.iter().map(|folder| home.join(folder)).inspect(|folder| {
        // If it cannot be made, the agent says what it misses.
        let _ = std::fs::create_dir_all(folder);
    });
    let files = files.iter().map(|file| home.join(file));
    folders.chain(files).collect()
}

/// Toolchains' caches of this user that existed a moment ago: many checks in a row do not look for all of them
/// each time.
pub fn cache_places(home: &Path) -> Vec<PathBuf> {
    static LATELY: Mutex<Option<(Instant, PathBuf, Vec<PathBuf>)>> = Mutex::new(None);
    let mut lately = LATELY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, of, places)) = &*lately
        && of == home
        && at.elapsed() < LOOK_EVERY
    {
        return places.clone();
    }
    let places = existing_caches(home);
    *lately = Some((Instant::now(), home.to_owned(), places.clone()));
    places
}

fn existing_caches(home: &Path) -> Vec<PathBuf> {
    let parts =
        CACHES.iter().flat_map(|(tool, parts)| parts.iter().map(move |part| home.join(tool).join(part)));
    parts.filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_settings_of_toolchains_are_not_among_their_caches() {
        let home = tempfile::tempdir().unwrap();
        for folder in [".cache", ".cargo/registry", ".cargo/bin", "go/pkg", "go/bin"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        let places = existing_caches(home.path());
        assert_eq!(places, [".cache", ".cargo/registry", "go/pkg"].map(|part| home.path().join(part)));
    }

    #[test]
    fn an_agents_folders_are_made_and_its_files_are_not() {
        let home = tempfile::tempdir().unwrap();
        let places = agent_places(&[".own/sessions"], &[".own.json", "/dev/ptmx"], home.path());
        let below = |part| home.path().join(part);
        assert_eq!(places, [below(".own/sessions"), below(".own.json"), PathBuf::from("/dev/ptmx")]);
        assert!(places[0].is_dir() && !places[1].exists());
        assert!(agent_places(&[], &[], home.path()).is_empty());
    }
}
